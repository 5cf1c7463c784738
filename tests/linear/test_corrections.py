"""The corrections of a private regression."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from privfeat import DPLeastSquaresRegressor

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


def test_corrections_bring_a_fit_nearer_to_least_squares():
    """By a factor of two at least; without noise they change nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 8))
    y = X @ rng.normal(size=8) + 0.3 * rng.normal(size=4000)
    expected = LinearRegression().fit(X, y).coef_

    def error(n_iter):
        model = DPLeastSquaresRegressor(
            epsilon=1.0,
            clip_norm=4.0,
            target_bounds=(-10.0, 10.0),
            n_iter=n_iter,
            random_state=0,
        )
        return np.linalg.norm(model.fit(X, y).coef_ - expected)

    assert error(4) < 0.5 * error(1)


def test_sums_of_residuals_move_no_more_than_declared(spy):
    """Residuals far beyond the cut, of rows at the bound, attain the declared norm."""
    X, y = np.array([[1.0, 0.0], [0.3, 0.2]]), np.array([1.0, -1.0])
    model = DPLeastSquaresRegressor(epsilon=0.1, target_bounds=(-1, 1))
    spy.start()
    model.fit(X[:1], y[:1])
    calls = spy.calls
    spy.start(answers=calls)
    DPLeastSquaresRegressor(epsilon=0.1, target_bounds=(-1, 1)).fit(X, y)
    record = model.privacy_.releases[1]
    for one, two in zip(calls[1:], spy.calls[1:], strict=True):
        moved = np.linalg.norm(one.exact - two.exact)
        assert moved <= record.l2_sensitivity
