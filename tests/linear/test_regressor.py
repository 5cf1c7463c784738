"""DPLeastSquaresRegressor: regression of a bounded target from one release."""

import itertools
import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from privfeat import DPLeastSquaresRegressor, open_features
from privfeat.core.sums.processes import Team
from privfeat.data import write_features
from privfeat.estimation.rows.target import TargetRows
from privfeat.exceptions import PrivacyWarning
from privfeat.persistence import load, save
from tests.linear.replaying import (
    answered,
    assert_same_state,
    check_sensitivity,
    recorded,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::privfeat.exceptions.PrivacyWarning",
    "ignore::sklearn.exceptions.SkipTestWarning",
)
BOUNDS = (-2.0, 6.0)
OPTIONS = [
    {},
    {"fit_intercept": False},
    {"row_scaling": "unit", "clip_norm": 0.5},
    {"row_scaling": "clip", "clip_norm": 20.0, "target_scaling": 2.0},
]


@pytest.fixture(params=OPTIONS, ids=["clip", "origin", "unit", "wide"])
def options(request):
    return {"target_bounds": BOUNDS, **request.param}


@pytest.fixture
def data():
    """Two hundred records on a plane with a little noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [0.5, -1.0, 0.3] + 2.0 + 0.1 * rng.normal(size=200)
    return X, y


@parametrize_with_checks([DPLeastSquaresRegressor()])
def test_regressor_passes_every_check_of_sklearn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        DPLeastSquaresRegressor(epsilon=np.inf),
        DPLeastSquaresRegressor(epsilon=1, arithmetic="exact"),
    ]
)
def test_other_regressors_pass_every_check_of_sklearn(estimator, check):
    check(estimator)


def test_fit_warns_of_bounds_that_are_the_extremes_of_the_records(data):
    X, y = data
    of_records = (y.min(), y.max())
    with pytest.warns(PrivacyWarning, match="target_bounds should be known without"):
        DPLeastSquaresRegressor(target_bounds=of_records).fit(X, y)
    ratings = np.arange(len(y)) % 5 + 1.0  # many at both ends
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPLeastSquaresRegressor(target_bounds=(1, 5)).fit(X, ratings)
        DPLeastSquaresRegressor(target_bounds=(-1e3, 1e3)).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    "max_group_size", [pytest.param(None, marks=pytest.mark.slow), 2]
)
def test_fit_on_neighbours_differs_by_the_declared_sensitivity_alone(
    options, adjacency, max_group_size, data, spy
):
    """Records and targets far outside the bounds, of either sign."""
    X, y = data[0][:20], data[1][:20]
    groups = np.arange(20) // 3

    def make():
        return DPLeastSquaresRegressor(
            adjacency=adjacency,
            max_group_size=max_group_size,
            random_state=0,
            **options,
        )

    rows = [np.zeros(3), np.full(3, 1e9), np.array([-1e9, 0, 1.0]), np.full(3, 1e-3)]
    targets = [-1e9, 1e9, 0.0]
    own = slice(3, 6) if max_group_size else slice(3, 4)
    arrays = (X, y, groups) if max_group_size else (X, y)

    def changed(row, target):
        X_one, y_one = X.copy(), y.copy()
        X_one[own], y_one[own] = row, target
        return X_one, y_one, *arrays[2:]

    extremes = [changed(*pair) for pair in itertools.product(rows, targets)]
    for number, one in enumerate(extremes):
        first, calls = recorded(spy, make, one)
        neighbours = extremes[number + 1 :]
        if adjacency == "add_remove":
            neighbours = [tuple(np.delete(a, own, axis=0) for a in arrays)]
        for two in neighbours:
            again, other_calls = answered(spy, make, calls, two)
            check_sensitivity(first.privacy_, calls, other_calls)
            assert_same_state(first, again)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_declared_sensitivity_is_attained_without_a_rounding_error(adjacency, spy):
    """A row at the bound, and one at a right angle to it."""
    clf = DPLeastSquaresRegressor(
        adjacency=adjacency, fit_intercept=False, target_scaling=1.0, n_iter=1
    )
    exact = []
    for X, y in [([[1.0, 0.0]], [1.0]), ([[-1.0, 0.0]], [1.0])]:
        spy.start()
        clf.fit(X, y)
        exact += [spy.calls[0].exact]
    (record,) = clf.privacy_.releases
    move = exact[0] if adjacency == "add_remove" else exact[0] - exact[1]
    ratio = np.linalg.norm(move) / record.l2_sensitivity
    assert 1 - 1e-5 < ratio <= 1.0


def test_fit_without_privacy_is_ordinary_regression(data):
    X, y = data
    model = DPLeastSquaresRegressor(epsilon=math.inf, target_bounds=BOUNDS).fit(X, y)
    expected = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-4)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=1e-4)
    assert model.coef_.shape == (3,)
    assert np.ndim(model.intercept_) == 0


@pytest.mark.parametrize("ridge", [1.0, 50.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_fit_with_hardly_any_noise_is_ridge_regression(ridge, fit_intercept, data):
    """Rows inside the bound; without an intercept, of targets around the middle."""
    X, y = data
    middle = 2.0
    y = y if fit_intercept else y - middle
    model = DPLeastSquaresRegressor(
        noise_multiplier=1e-5,
        clip_norm=5.0,
        ridge=ridge,
        fit_intercept=fit_intercept,
        target_bounds=BOUNDS if fit_intercept else (-4.0, 4.0),
    ).fit(X, y)
    expected = Ridge(alpha=ridge, fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=2e-3)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=2e-3)


def test_a_row_that_is_too_long_keeps_the_linear_relation():
    """Half of the rows are ten times as long as the bound."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) * np.where(np.arange(400) < 200, 10.0, 0.3)[:, None]
    y = X @ [0.02, -0.01]
    model = DPLeastSquaresRegressor(noise_multiplier=1e-6, ridge=1e-6).fit(X, y)
    np.testing.assert_allclose(model.coef_, [0.02, -0.01], rtol=0.01)


def test_fit_cuts_targets_and_predictions_to_the_bounds(data):
    X, y = data
    model = DPLeastSquaresRegressor(epsilon=math.inf, target_bounds=(1.0, 3.0))
    same = clone(model).fit(X, np.clip(y, 1.0, 3.0))
    np.testing.assert_array_equal(model.fit(X, y).coef_, same.coef_)
    found = model.predict(100.0 * X)
    assert found.min() == 1.0
    assert found.max() == 3.0


def test_fit_with_privacy_learns(options, data):
    X, y = np.tile(data[0], (20, 1)), np.tile(data[1], 20)
    model = DPLeastSquaresRegressor(epsilon=2.0, **options).fit(X, y)
    if model.fit_intercept:  # without one, the plane is out of reach
        assert model.score(X, y) > 0.3
    names = {release.name: release.count for release in model.privacy_.releases}
    assert names == {"moments": 1, "residual_sums": 3}
    assert model.n_iter_ == 4


def test_fit_on_a_file_equals_fit_in_memory(options, data, tmp_path):
    X, y = data
    codes = np.round(2 * y).astype(int)
    write_features(tmp_path / "a.h5", {"train": (X.astype(np.float32), codes)})
    split = open_features(tmp_path / "a.h5")["train"]
    lazy, memory = (
        DPLeastSquaresRegressor(random_state=0, **options).fit(features, split.y)
        for features in (split.X, split.X[:])
    )
    np.testing.assert_array_equal(lazy.coef_, memory.coef_)
    np.testing.assert_array_equal(lazy.predict(split.X), memory.predict(split.X[:]))


def test_load_returns_what_was_saved(options, data, tmp_path):
    X, y = data
    model = DPLeastSquaresRegressor(**options).fit(X, y)
    save(model, tmp_path / "model")
    for copy in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert copy.get_params() == model.get_params()
        assert copy.privacy_ == model.privacy_
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))


@pytest.mark.validation
@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("target_bounds", 1.0),
        ("target_bounds", (1.0, 1.0)),
        ("target_bounds", (2.0, 1.0)),
        ("target_bounds", (0.0, math.inf)),
        ("target_bounds", (math.nan, 1.0)),
        ("target_bounds", (0.0, "1")),
        ("target_bounds", (0, 1, 2)),
        *itertools.product(
            ["target_scaling", "intercept_scaling", "clip_norm"],
            [0.0, -1.0, 1e6, 1e-6, math.nan, math.inf, True, "1", None],
        ),
        *itertools.product(["ridge"], [-1.0, math.nan, math.inf, True, "1"]),
        ("max_group_size", 0),
        *itertools.product(["n_iter"], [0, -1, 1.5, True, "1", None, 10**9]),
        ("fit_intercept", None),
        ("row_scaling", "other"),
    ],
)
def test_fit_refuses_a_wrong_parameter(name, bad, data):
    model = DPLeastSquaresRegressor(**{name: bad})
    with pytest.raises((TypeError, ValueError), match=name):
        model.fit(*data)
    assert not hasattr(model, "privacy_")


@pytest.mark.parametrize(
    "bad", [["a"] * 200, [None] * 200, [math.nan] * 200, np.ones((200, 2))]
)
def test_fit_refuses_targets_that_are_no_numbers(bad, data):
    model = DPLeastSquaresRegressor()
    wrong = r"y must hold numbers|NaN|1d array"
    with pytest.raises((TypeError, ValueError), match=wrong):
        model.fit(data[0], bad)
    assert not hasattr(model, "privacy_")


def test_fit_on_one_record_is_finite():
    model = DPLeastSquaresRegressor().fit([[1.0, 2.0]], [0.5])
    assert np.all(np.isfinite(model.coef_))
    free = DPLeastSquaresRegressor(epsilon=math.inf).fit([[1.0, 2.0]], [0.5])
    np.testing.assert_allclose(free.predict([[1.0, 2.0]]), 0.5, atol=1e-6)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_row_does_not_depend_on_how_many_follow(order):
    """The norm of a long row, summed in another order, moves it by a grid step."""
    X = np.random.default_rng(0).normal(size=(2, 4096))
    rows = [
        TargetRows(
            np.array(X[:n], order=order),
            np.zeros(n),
            unit_norm=1.0,
            target_scale=1.0,
            clip_norm=2.0,
            intercept_scaling=0.5,
            team=Team(),
            private=True,
        )
        for n in (1, 2)
    ]
    one, two = (next(iter(each.chunks())).rows[0] for each in rows)
    np.testing.assert_array_equal(one, two)


def test_a_target_beyond_float64_is_cut_without_a_warning():
    """Which would tell of it."""
    y = np.array([0, np.longdouble("1e4000")])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        DPLeastSquaresRegressor(target_bounds=(0, 1)).fit(np.ones((2, 2)), y)
