"""A public prior of a regression is read in its units, stated, kept and weighed."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from privfeat import DPLeastSquaresRegressor, PrivatePipeline, load, save
from privfeat.estimation.team import _described
from privfeat.linear.parameters.prior import read_regression_prior

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
SLOPES, OFFSET = np.array([1.0, -2.0, 0.5]), 3.0
FACT = "that the prior was made without the records"


@pytest.fixture
def data():
    """Four hundred records on a plane with a little noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    return X, X @ SLOPES + OFFSET + 0.1 * rng.normal(size=400)


def regressor(prior=None, **options):
    given = {"epsilon": 1.0, "target_bounds": (-5.0, 11.0), "clip_norm": 2.0}
    given |= {"random_state": 0, "prior": prior}
    return DPLeastSquaresRegressor(**given | options)


def scores(prior, data, **options):
    fits = (regressor(prior, random_state=i, **options) for i in range(8))
    return [fit.fit(*data).score(*data) for fit in fits]


def test_right_prior_helps_where_noise_is_large(data):
    """As much as the half that is believed of it without evidence buys."""
    right = np.append(SLOPES, OFFSET)
    gained = np.subtract(
        scores(right, data, epsilon=0.02), scores(None, data, epsilon=0.02)
    )
    assert np.mean(gained) > 0.3


@pytest.mark.parametrize("prior", [SLOPES, -SLOPES, [0.0, 0.0, 2.0]])
def test_prior_costs_nothing_where_releases_tell_what_it_is_worth(prior, data):
    assert (
        min(scores(prior, data, epsilon=3.0))
        > min(scores(None, data, epsilon=3.0)) - 0.01
    )


@pytest.mark.parametrize(
    "options",
    [{}, {"fit_intercept": False}, {"row_scaling": "unit"}, {"target_scaling": 2.0}],
)
def test_fit_without_noise_is_that_without_a_prior(options, data):
    given = {"epsilon": float("inf"), **options}
    found = regressor(-SLOPES, **given).fit(*data)
    expected = regressor(**given).fit(*data)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)


@pytest.mark.parametrize("row_scaling", ["clip", "unit"])
def test_coefficients_of_a_fit_are_read_as_that_fit(row_scaling):
    """In units of bounded rows, whatever the scales are."""
    model = regressor(row_scaling=row_scaling, clip_norm=3.0, intercept_scaling=0.2)
    rows = np.array([0.3, -0.2, 0.1, 0.7])
    units = model._units(3)
    model.set_params(prior=[*(rows * units)[:3], (rows * units)[3] + 4.0])
    found = read_regression_prior(model, units, 4.0)
    np.testing.assert_allclose(found.coef, rows[None])


def test_prior_without_an_intercept_leaves_it_to_the_records(data):
    model = regressor(SLOPES)
    found = read_regression_prior(model, model._units(3), 3.0)
    assert found.coef.shape == (1, 3)
    assert np.mean(scores(SLOPES, data)) > 0.95


@pytest.mark.parametrize("kind", [LinearRegression, Ridge, DPLeastSquaresRegressor])
def test_estimator_is_the_array_of_its_coefficients(kind, data):
    X, y = data
    if kind is DPLeastSquaresRegressor:
        fitted = regressor(epsilon=8.0).fit(X[:50], y[:50])
    else:
        fitted = kind().fit(X[:50], y[:50])
    values = np.append(fitted.coef_, fitted.intercept_)
    found, expected = (
        regressor(p).fit(X, y) for p in (FrozenEstimator(fitted), values)
    )
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    several = LinearRegression().fit(X[:50], y[:50, None])
    one = regressor(FrozenEstimator(several)).fit(X, y)
    assert one.coef_.shape == (3,)


def test_column_of_one_feature_takes_one_slope():
    X = np.linspace(-1.0, 1.0, 50)[:, None]
    assert regressor([2.0]).fit(X, 2.0 * X[:, 0]).coef_.shape == (1,)


@pytest.mark.parametrize(
    ("prior", "kind", "words"),
    [
        (np.ones(2), ValueError, r"shape \(3,\), got \(2,\)"),
        (np.ones(5), ValueError, r"shape \(3,\), got \(5,\)"),
        (np.ones((2, 3)), ValueError, r"shape \(3,\), got \(2, 3\)"),
        (np.zeros(3), ValueError, "slopes of zero"),
        (np.zeros(4), ValueError, "slopes of zero"),
        (np.full(3, 1e200), ValueError, "Check its units"),
        (np.full(3, np.nan), ValueError, "must be finite"),
        ("names", TypeError, "or a fitted linear regressor"),
        (LinearRegression(), ValueError, "FrozenEstimator"),
        (make_pipeline(LinearRegression()), ValueError, "must be fitted"),
        (LinearRegression().fit(np.eye(2), [1, 2]), ValueError, r"got \(2,\)"),
        (LinearRegression().fit(np.eye(3), np.eye(3)), ValueError, r"got \(3, 3\)"),
        (LogisticRegression().fit(np.eye(3), [0, 0, 1]), TypeError, "a regressor"),
    ],
)
def test_prior_that_does_not_fit_is_refused_before_a_fit(prior, kind, words):
    with pytest.raises(kind, match=words):
        regressor(prior).planned(3)


def test_prior_needs_a_correction_that_could_mend_it():
    with pytest.raises(ValueError, match="n_iter must be at least 2 with a prior"):
        regressor(SLOPES, n_iter=1).planned(3)


def test_slopes_that_underflow_lose_no_charged_fit(data):
    found = regressor(1e-200 * SLOPES).fit(*data)
    np.testing.assert_allclose(found.predict(data[0]), data[1], atol=4.0)


def test_prior_costs_nothing_and_is_stated(data):
    given, without = (regressor(p).fit(*data).privacy_ for p in (SLOPES, None))
    assert given.releases == without.releases
    assert FACT in given.public
    assert FACT not in without.public


def test_saved_estimator_becomes_an_array(data, tmp_path):
    prior = LinearRegression().fit(data[0][:50], data[1][:50])
    fitted = regressor(FrozenEstimator(prior)).fit(*data)
    save(fitted, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.prior, [*prior.coef_, prior.intercept_])
    assert FACT in loaded.privacy_.public
    loaded.set_params(random_state=0).fit(*data)
    np.testing.assert_allclose(loaded.coef_, fitted.coef_)


def test_clones_and_pipelines_keep_a_frozen_prior(data):
    prior = LinearRegression().fit(data[0][:50], data[1][:50])
    model = regressor(FrozenEstimator(prior))
    first, second = (e.fit(*data) for e in (model, clone(model)))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    with pytest.raises(ValueError, match="FrozenEstimator"):
        clone(regressor(prior)).fit(*data)
    last = clone(model).set_params(epsilon=None, random_state=None)
    steps = PrivatePipeline([("last", last)], epsilon=1.0, random_state=0)
    assert f"last: {FACT}" in steps.fit(*data).privacy_.public


def test_processes_compare_what_the_prior_says():
    def told(prior):
        model = regressor(prior)
        parts = read_regression_prior(model, model._units(3), 3.0).parts
        return _described(model, {"prior": parts})

    assert told(SLOPES) != told(-SLOPES)
    assert told(SLOPES) == told(list(SLOPES))


def test_intervals_are_refused_with_a_prior(data, tmp_path):
    fitted = regressor(SLOPES).fit(*data)
    save(fitted, tmp_path / "model")
    changed = load(tmp_path / "model").set_params(prior=None)
    for model in (fitted, load(tmp_path / "model"), changed):
        with pytest.raises(ValueError, match="prior must be None for intervals"):
            model.coef_interval()
        with pytest.raises(ValueError, match="prior must be None for intervals"):
            model.predict_interval(data[0])
