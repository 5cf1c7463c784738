"""A fit with more columns than a machine has room or patience for says so first."""

import time
import warnings

import numpy as np
import pytest

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPNearestMean,
    DPNewton,
    PrivacyLedger,
    PrivacyWarning,
)
from privfeat.solvers.spectrum import check_gram_cost, time_of_eigenvectors

X, Y = np.eye(6, 20), np.arange(6) % 2
WITH_GRAMS = [
    DPFC(n_iter=1, classes=[0, 1]),
    DPNewton(classes=[0, 1]),
    DPLeastSquares(classes=[0, 1]),
    DPLeastSquaresRegressor(target_bounds=(0, 1)),
]


@pytest.fixture
def small_machine(plant):
    """A machine with room for matrices of twenty columns."""
    plant("memory of the machine", lambda: 8.0 * 6 * 20.5**2)


@pytest.fixture
def slow_machine(plant):
    plant("columns from which eigenvectors are timed", 20)
    plant("time of eigenvectors", lambda size: 10.0 * size)


@pytest.mark.parametrize("estimator", WITH_GRAMS, ids=lambda e: type(e).__name__)
def test_fit_refuses_a_gram_matrix_without_room_before_a_charge(
    estimator, small_machine, tmp_path
):
    ledger = PrivacyLedger(tmp_path / "x.ledger", dataset="x", epsilon=3, delta=1e-5)
    remedy = "Pass fewer features"
    if hasattr(estimator, "center"):
        remedy = "Use DPAdamLinear, which needs no such matrix"
    text = rf"at most 20 columns for {type(estimator).__name__}, got 21 .* {remedy}\.$"
    with pytest.raises(ValueError, match=text):
        estimator.set_params(ledger=ledger).fit(X, Y)
    assert not ledger.history
    estimator.set_params(fit_intercept=False, ledger=None).fit(X, Y)
    estimator.set_params(fit_intercept=True)


@pytest.mark.parametrize("estimator", WITH_GRAMS, ids=lambda e: type(e).__name__)
def test_fit_warns_of_eigenvectors_that_take_minutes(estimator, slow_machine):
    with pytest.warns(UserWarning, match=r"got 21 .* take up to 4 minutes") as caught:
        estimator.fit(X, Y)
    (found,) = caught
    assert found.category is UserWarning
    assert found.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.set_params(fit_intercept=False).fit(X, Y)
    estimator.set_params(fit_intercept=True)


def test_fit_without_a_gram_matrix_takes_any_number_of_columns(
    small_machine, slow_machine
):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPAdamLinear(n_iter=1, classes=[0, 1]).fit(X, Y)
        DPNearestMean(classes=[0, 1]).fit(X, Y)


def test_the_cost_does_not_tell_of_records(small_machine):
    said = set()
    for n_rows in (4, 6):
        with pytest.raises(ValueError, match="at most 20 columns") as caught:
            DPFC(classes=[0, 1]).fit(X[:n_rows], Y[:n_rows])
        said.add(str(caught.value))
    assert len(said) == 1


def test_few_minutes_are_not_warned_of(slow_machine, plant):
    plant("time of eigenvectors", lambda size: 119.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", PrivacyWarning)
        DPFC(n_iter=1, classes=[0, 1]).fit(X, Y)


def test_unknown_memory_refuses_nothing(plant):
    plant("memory of the machine", lambda: float("inf"))
    check_gram_cost("DPFC", 4096, 1, "")


def test_time_of_eigenvectors_grows_as_the_cube(monkeypatch):
    moments = iter([0.0, 1.0, 1.5] * 4)
    monkeypatch.setattr(time, "perf_counter", lambda: next(moments))
    assert time_of_eigenvectors(16, 8) == 4.0
    assert time_of_eigenvectors(32, 8) == 32.0
