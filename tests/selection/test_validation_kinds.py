"""Private scores in folds of regressors, and of users with several records."""

import math

import numpy as np
import pytest

from privfeat import (
    DPLeastSquares,
    DPLeastSquaresRegressor,
    PrivacyWarning,
    PrivatePipeline,
)
from privfeat.audit import recording
from privfeat.preprocessing import DPStandardScaler
from privfeat.selection import private_cross_val_score
from tests.linear.replaying import check_sensitivity
from tests.selection.test_validation import ByPlace, parts

BOUNDS = (-3.0, 3.0)
LONG = [
    [1.7e308, -1.7e308, 1.7e308, 1.7e308],
    [1e6, -1e6, 1e6, 0.0],
    [0.0, 0.0, 0.0, 0.0],
    [-9.0, 0.1, 0.0, 1.0],
]


class ByUser(ByPlace):
    """Folds of users by their number: those of the others stay when one comes."""

    def split(self, X, groups):
        folds = np.asarray(groups) % self.n_splits
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


@pytest.fixture
def data():
    """Nine hundred records and their targets, three of each user."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    return X, X[:, 0] + 0.1 * rng.normal(size=900), np.arange(900) // 3


def regressor(**options):
    return DPLeastSquaresRegressor(target_bounds=BOUNDS, clip_norm=2.0, **options)


def clf(**options):
    return DPLeastSquares(classes=[False, True], **options)


def test_a_regressor_is_scored_by_r_squared(data):
    X, y, _ = data
    found = private_cross_val_score(regressor(), X, y, epsilon=20.0)
    assert found.accuracy is None
    assert found.r2.low <= found.r2.value <= found.r2.high
    assert found.r2.value > 0.5
    assert found.scores.value.shape == (5,)
    assert str(found).startswith("R squared: ")
    assert found.privacy.releases[-1].name == "scores.errors"
    assert found.privacy.epsilon == 20.0


def test_without_privacy_r_squared_is_that_of_the_folds(data, plant):
    plant("folds of private scores", ByPlace)
    X, y, _ = data
    y = y.clip(*BOUNDS)
    with pytest.warns(PrivacyWarning, match="epsilon should be at most"):
        found = private_cross_val_score(regressor(), X, y, n_splits=3, epsilon=math.inf)
    for (train, test), score in zip(
        ByPlace(3).split(X), found.scores.value, strict=True
    ):
        with pytest.warns(PrivacyWarning):
            fitted = regressor(epsilon=math.inf).fit(X[train], y[train])
        assert score == pytest.approx(fitted.score(X[test], y[test]), abs=1e-4)


def test_a_pipeline_of_a_regressor_is_scored(data):
    X, y, _ = data
    steps = [("scale", DPStandardScaler(bounds=(-4.0, 4.0))), ("model", regressor())]
    found = private_cross_val_score(PrivatePipeline(steps), X, y, epsilon=20.0)
    assert found.r2.value > 0.5


def test_a_regressor_needs_bounds_of_its_target(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="target_bounds must be given in the regr"):
        private_cross_val_score(DPLeastSquaresRegressor(), X, y)
    wide = DPLeastSquaresRegressor(target_bounds=(-1e80, 1e80))
    with pytest.raises(ValueError, match="target_bounds"):
        private_cross_val_score(wide, X, y)


def test_users_are_protected_as_a_whole(data):
    X, y, users = data
    given = {"groups": users, "max_group_size": 2, "epsilon": 20.0}
    found = private_cross_val_score(clf(), X, y > 0, **given)
    assert found.privacy.unit == "user"
    assert found.privacy.epsilon == 20.0
    outcomes = found.privacy.releases[-1]
    assert outcomes.l2_sensitivity == pytest.approx(2.0, rel=1e-6)
    assert "that of a user's records at most 2 count" in found.privacy.public
    assert found.accuracy.value > 0.8


def test_all_records_of_a_user_are_in_one_fold(data, plant):
    plant("folds of private scores", ByUser)
    X, y, users = data
    with recording() as spy:
        given = {"groups": users, "max_group_size": 3, "epsilon": 20.0}
        private_cross_val_score(clf(), X, y > 0, n_splits=3, **given)
    np.testing.assert_array_equal(spy.calls[-1].exact.sum(axis=1), [300, 300, 300])


@pytest.mark.parametrize(("groups", "most"), [(True, None), (False, 2), (True, 0)])
def test_users_and_how_many_count_go_together(data, groups, most):
    X, y, users = data
    given = {"groups": users if groups else None, "max_group_size": most}
    with pytest.raises(ValueError, match="max_group_size"):
        private_cross_val_score(clf(), X, y > 0, **given)


def neighbours(X, y, users, adjacency):
    """Yield neighbours: of a new user, without the last, or with another in place."""
    n_own = 1 if users is None else 3
    for row in LONG:
        for target in (-9.0, 9.0):
            rows, targets = np.tile(row, (n_own, 1)), np.full(n_own, target)
            if adjacency == "replace_one":
                found = np.vstack([rows, X[n_own:]]), np.append(targets, y[n_own:])
                whose = users
            else:
                found = np.vstack([X, rows]), np.append(y, targets)
                whose = None if users is None else np.append(users, [999] * n_own)
            yield *found, whose
    if adjacency == "add_remove":
        kept = slice(None, -n_own)
        yield X[kept], y[kept], None if users is None else users[kept]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
@pytest.mark.parametrize("by_user", [False, True])
@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_no_sum_moves_beyond_its_bound_under_equal_releases(
    adjacency, numbers, by_user, data, plant
):
    plant("folds of private scores", ByUser if by_user else ByPlace)
    X, y, users = (part[:90] for part in data)
    users = users if by_user else None
    model = (regressor if numbers else clf)(adjacency=adjacency)
    options = {"n_splits": 3, "random_state": 5}
    options |= {"max_group_size": 2} if by_user else {}

    def of(y):
        return y if numbers else y > 0

    with recording() as spy:
        spy.start()
        found = private_cross_val_score(model, X, of(y), groups=users, **options)
        calls = spy.calls
        for rows, targets, whose in neighbours(X, y, users, adjacency):
            spy.start(answers=calls)
            private_cross_val_score(model, rows, of(targets), groups=whose, **options)
            for part, one, two in parts(found.privacy, calls, spy.calls):
                check_sensitivity(part, one, two)
