"""Intervals of a private regression: what they hold, and what they need."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from privfeat import DPLeastSquaresRegressor, PrivatePipeline, open_features
from privfeat.data import write_features
from privfeat.persistence import load, save
from privfeat.preprocessing import DPStandardScaler
from tests.combinations import few

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
BOUNDS = (-2.0, 6.0)


@pytest.fixture
def data():
    """Two hundred records on a plane with a little noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    return X, X @ [0.5, -1.0, 0.3] + 2.0 + 0.1 * rng.normal(size=200)


@pytest.fixture(
    params=[
        {},
        {"fit_intercept": False},
        {"row_scaling": "unit", "clip_norm": 0.5},
        {"row_scaling": "clip", "clip_norm": 20.0, "target_scaling": 2.0},
    ],
    ids=["clip", "origin", "unit", "wide"],
)
def options(request):
    return {"target_bounds": BOUNDS, **request.param}


@pytest.mark.slow
@pytest.mark.parametrize("n_iter", few(1, [4, 1]))
def test_intervals_hold_what_is_fitted(options, n_iter, data, tmp_path):
    X, y = data
    model = DPLeastSquaresRegressor(n_iter=n_iter, **options).fit(X, y)
    wide, narrow = model.coef_interval(), model.coef_interval(level=0.5)
    assert wide.shape == (3, 2)
    np.testing.assert_allclose(wide.mean(axis=1), model.coef_)
    assert np.all(np.diff(narrow) < np.diff(wide))
    np.testing.assert_array_equal(wide, model.coef_interval())
    low, high = model.predict_interval(X).T
    predicted = model.predict(X)
    assert np.all((BOUNDS[0] <= low) & (low <= predicted))
    assert np.all((predicted <= high) & (high <= BOUNDS[1]))
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").coef_interval(), wide)


@pytest.mark.parametrize("n_iter", [1, 3])
def test_intervals_of_a_step_take_its_own_noise(n_iter, data):
    """The first release of a pipeline is that of another step."""
    X, y = data
    given = {"target_bounds": BOUNDS, "row_scaling": "clip", "n_iter": n_iter}
    steps = [("scale", DPStandardScaler(bounds=(-4, 4)))]
    steps += [("last", DPLeastSquaresRegressor(**given))]
    shares = {"scale": 30.0, "last": 1.0}
    last = PrivatePipeline(steps, epsilon=1.0, shares=shares).fit(X, y)[-1]
    found = last.coef_interval()
    theirs = last.privacy_.releases
    own = tuple(r for r in theirs if r.name.startswith("last."))
    assert own[0].noise_stddev > 2.0 * theirs[0].noise_stddev
    last.privacy_ = replace(last.privacy_, releases=own)
    np.testing.assert_array_equal(found, last.coef_interval())


def test_intervals_of_a_file_are_those_in_memory(data, tmp_path):
    X, y = data
    write_features(tmp_path / "a.h5", {"train": (X.astype(np.float32), y > 2.0)})
    split = open_features(tmp_path / "a.h5")["train"]
    model = DPLeastSquaresRegressor(target_bounds=BOUNDS).fit(X, y)
    np.testing.assert_allclose(
        model.predict_interval(split.X), model.predict_interval(split.X[:])
    )


@pytest.mark.slow
def test_intervals_without_noise_are_those_of_the_sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3)) * [1.0, 2.0, 0.5]
    y = X @ [0.5, -1.0, 0.3] + rng.normal(size=3000)
    model = DPLeastSquaresRegressor(epsilon=math.inf, target_bounds=(-9.0, 9.0))
    found = np.diff(model.fit(X, y).coef_interval(n_resamples=4000))[:, 0]
    spread = 2 * 1.96 / np.sqrt(3000) / np.array([1.0, 2.0, 0.5])
    np.testing.assert_allclose(found, spread, rtol=0.1)


@pytest.mark.slow
def test_intervals_cover_the_relation_of_the_population():
    """Fixed keys; 400 intervals of 95 %: 0.91 is four stddevs below."""
    held, new = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        coef = rng.normal(size=10) / 3.0
        X = rng.normal(size=(6000, 10))
        y = X @ coef + rng.normal(size=6000)
        model = DPLeastSquaresRegressor(
            epsilon=2.0, clip_norm=5.0, target_bounds=(-6.0, 6.0), random_state=seed
        ).fit(X[:5000], y[:5000])
        low, high = model.coef_interval().T
        held.append((low <= coef) & (coef <= high))
        low, high = model.predict_interval(X[5000:]).T
        new.append((low <= y[5000:]) & (y[5000:] <= high))
    assert 0.91 < np.mean(held) < 0.99
    assert 0.93 < np.mean(new) < 0.99


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *itertools.product(["level"], [0.0, 1.0, 95, math.nan, "0.9", None]),
        *itertools.product(["n_resamples"], [0, 1.5, "9"]),
    ],
)
def test_intervals_refuse_a_wrong_argument(name, bad, data):
    model = DPLeastSquaresRegressor(target_bounds=BOUNDS).fit(*data)
    with pytest.raises((TypeError, ValueError), match=name):
        model.coef_interval(**{name: bad})


def test_intervals_need_the_released_matrix(data):
    model = DPLeastSquaresRegressor(target_bounds=BOUNDS)
    with pytest.raises(NotFittedError):
        model.coef_interval()
    model.fit(*data)
    del model.moments_  # as of a model that was saved before there were intervals
    with pytest.raises(AttributeError, match="moments_ must be there"):
        model.predict_interval(data[0])


@pytest.mark.parametrize("bound", ["count", "sum"])
def test_intervals_are_refused_where_users_are_protected(data, bound):
    """Their records may be alike: intervals of 95 % held in 50 to 70 % of fits."""
    X, y = data
    model = DPLeastSquaresRegressor(
        target_bounds=BOUNDS, max_group_size=4, user_bound=bound
    ).fit(X, y, groups=np.arange(len(X)) // 4)
    with pytest.raises(ValueError, match="got one of users"):
        model.coef_interval()
    with pytest.raises(ValueError, match="got one of users"):
        model.predict_interval(X)


@pytest.mark.slow
def test_intervals_and_predictions_are_of_the_parameters_of_the_fit(data, tmp_path):
    """Releases are in units of the clip norm that the fit had."""
    X, y = data
    model = DPLeastSquaresRegressor(target_bounds=BOUNDS, clip_norm=4.0).fit(X, y)
    expected = model.coef_interval(), model.predict_interval(X), model.predict(X)
    model.set_params(clip_norm=1.0, target_bounds=(0.0, 1.0), row_scaling="unit")
    save(model, tmp_path / "model")
    for each in (model, load(tmp_path / "model")):
        found = each.coef_interval(), each.predict_interval(X), each.predict(X)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    model.fit(X, y)
    assert model.predict(X).max() <= 1.0
