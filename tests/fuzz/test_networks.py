"""Networks: parameters and arrays are refused in words, or give a finite fit."""

import inspect
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfeat import DPSGDClassifier, DPSGDRegressor
from tests.fuzz.test_estimators import REFUSALS, matrices, odd, refused, targets

NETWORKS = (DPSGDClassifier, DPSGDRegressor)
# A text would be a folder anywhere, of which the fit makes a checkpoint.
NOT_TRIED = {"verbose", "checkpoint_dir"}


def outcome(cls, options, X, y):
    """Train, and return what became of it; fails on anything that may not happen."""
    fixed = {"model": "mlp", "n_iter": 1, "expected_batch_size": None}
    fixed |= {"classes": range(2)} if cls is DPSGDClassifier else {}
    network = cls(**(fixed | options))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            network.fit(X, y)
        except REFUSALS as error:
            return refused(error)
    assert all(np.all(np.isfinite(leaf)) for leaf in network.parameters_.values())
    statement = network.privacy_
    assert statement.epsilon > 0.0  # NaN fails
    without_noise = network.epsilon == math.inf or network.noise_multiplier == 0
    assert math.isfinite(statement.epsilon) or without_noise
    if math.isfinite(statement.epsilon):
        assert all(record.noise_stddev > 0.0 for record in statement.releases)
    return "trained"


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, 3)), np.arange(12) % 2


@pytest.mark.slow
@pytest.mark.parametrize("cls", NETWORKS)
def test_a_parameter_of_a_trainer_is_refused_or_gives_a_finite_fit(
    cls, data, tried, examples
):
    names = sorted(set(inspect.signature(cls).parameters) - NOT_TRIED)

    @examples(40)
    @given(name=st.sampled_from(names), value=odd)
    def attempt(name, value):
        tried.append(outcome(cls, {name: value}, *data))

    attempt()


@pytest.mark.parametrize("cls", NETWORKS)
def test_an_array_for_a_trainer_is_refused_or_gives_a_finite_fit(cls, tried, examples):
    @examples(20)
    @given(X=matrices, y=targets)
    def attempt(X, y):
        tried.append(outcome(cls, {}, X, y))

    attempt()
