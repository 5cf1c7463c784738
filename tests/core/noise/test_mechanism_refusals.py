"""What a mechanism adds no noise to: mixtures of sums, and what is not symmetric."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds.user_clips import UserClip
from privfeat.core.noise.keys import KeyStream
from privfeat.core.sums.totals import ExactSum
from privfeat.exceptions import PrivacyError
from tests.core.mechanisms import charged_mechanism
from tests.teams import Board, Thread


@pytest.fixture
def plan():
    return plan_releases([Query("gram", 2.0), Query("other", 2.0)], epsilon=1.0)


def test_sums_of_two_queries_are_not_added(plan, plant):
    """Of processes that differ: both are told before noise is added to a mixture."""
    board, mechanisms, added = Board(), [], []

    class Watched(Thread):
        def total(self, values, what="sum", unit=1.0):
            added.append(what)
            return super().total(values, what, unit)

    for index in range(2):
        plant("team that draws noise", lambda i=index: Watched(i, 2, board=board))
        mechanisms.append(charged_mechanism(plan, KeyStream(3, index)))
    with ThreadPoolExecutor(2) as threads:
        drawn = [
            threads.submit(mechanism.release, name, ExactSum(np.ones(3)))
            for mechanism, name in zip(mechanisms, ("gram", "other"), strict=True)
        ]
    for one, name in zip(drawn, ("gram", "other"), strict=True):
        with pytest.raises(PrivacyError, match=f"must have the same sum of {name}"):
            one.result()
    assert sorted(added) == ["sum of gram", "sum of other"]


@pytest.mark.parametrize("arithmetic", ["float64", "exact"])
@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3,)])
def test_mechanism_has_less_noise_for_symmetric_matrices_alone(plan, shape, arithmetic):
    mechanism = charged_mechanism(plan, KeyStream(3), arithmetic)
    exact = ExactSum(np.arange(math.prod(shape)).reshape(shape), 2.0**-20)
    with pytest.raises(PrivacyError, match="gram must be a symmetric matrix"):
        mechanism.release("gram", exact, symmetric=True)
    assert mechanism.release("gram", exact).value.shape == shape


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_mechanism_has_the_noise_of_clipped_users_for_their_sums_alone(epsilon):
    plan = plan_releases([Query("gram", 2.0, count=2, clipped=True)], epsilon=epsilon)
    mechanism = charged_mechanism(plan, KeyStream(3))
    total = np.ones(3, np.int64), 2.0**-20, None
    mechanism.release("gram", ExactSum(*total, UserClip(1.0, 4, 1)))
    if plan.private:
        with pytest.raises(PrivacyError, match="gram must be clipped by user"):
            mechanism.release("gram", ExactSum(*total))
    else:
        mechanism.release("gram", ExactSum(*total))
