"""Who watches a fit sees its releases, and nobody does afterwards."""

import numpy as np
import pytest

from privfeat.core.calibration import plan_releases
from privfeat.core.keys import KeyStream
from privfeat.core.mechanisms import GaussianMechanism
from privfeat.core.observation import observe
from privfeat.core.plan import Query
from privfeat.core.statistics import ExactSum


@pytest.fixture
def release():
    """Return a function that releases a sum of zeros."""
    plan = plan_releases([Query("sum", 1.0)], epsilon=1.0)

    def draw():
        mechanism = GaussianMechanism(plan, KeyStream(0))
        return mechanism.release("sum", ExactSum(np.zeros(3)))

    return draw


def test_observer_sees_the_sum_and_decides_what_the_fit_goes_on_with(release):
    genuine, seen = release(), []

    def watch(exact, released):
        seen.append((exact.value, released.value))
        return genuine

    with observe(watch):
        found = release()
    assert found is genuine
    ((exact, released),) = seen
    np.testing.assert_array_equal(exact, np.zeros(3))
    np.testing.assert_array_equal(released, genuine.value)


def test_observer_is_gone_after_the_fit_even_if_it_fails(release):
    def fail(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), observe(fail):
        release()
    assert release().name == "sum"
