"""Constructor parameters and arrays: refused in words without data, or a finite fit."""

import inspect
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import NotFittedError

from privfeat import DPRandomizedSearch, linear
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.conversions import (
    gaussian_epsilon,
    gaussian_mu,
    zcdp_epsilon,
)
from privfeat.core.accounting.plan import Query
from privfeat.exceptions import PrivacyError

ESTIMATORS = [
    found
    for found in vars(linear).values()
    if isinstance(found, type) and not inspect.isabstract(found)
]
REFUSALS = (TypeError, ValueError, PrivacyError, FloatingPointError)
SECRET = 8731.25  # stands in the data alone, and must stand in no message
FAST = {"n_iter": 1}


class Strange:
    """No number, and no address in its words, which may hold any digits."""

    def __repr__(self):
        return "<strange>"


numbers = st.one_of(
    st.integers(-3, 3),
    st.integers(2**31, 2**70),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.5, 1e-300, 5e-324, 1e300, -0.0]),
    st.sampled_from([np.float32(0.3), np.int8(2), np.bool_(True), np.float16("nan")]),
)
odd = st.one_of(
    numbers,
    st.none(),
    st.booleans(),
    st.text(max_size=5),
    st.sampled_from(
        ["exact", "unit", "clip", "replace_one", "softmax", "full", "adam"]
    ),
    st.binary(max_size=3),
    st.lists(numbers, max_size=4),
    st.dictionaries(st.text(max_size=3), numbers, max_size=2),
    hnp.arrays(np.float64, hnp.array_shapes(max_dims=2, max_side=4)),
    st.builds(Strange),
)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), np.arange(12) % 2
    X[5, 1] = SECRET
    return X, y


def options_of(cls):
    known = inspect.signature(cls).parameters
    bounded = {"target_bounds": (0.0, 1.0)} if "target_bounds" in known else {}
    return {name: value for name, value in FAST.items() if name in known} | bounded


def refused(error):
    assert "8731" not in str(error)
    return "refused"


def outcome(cls, options, X, y):
    """Fit, and return what became of it; fails on anything that may not happen."""
    estimator = cls(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator.fit(X, y)
        except REFUSALS as error:
            return refused(error)
        assert np.all(np.isfinite(estimator.coef_))
        assert np.all(np.isfinite(estimator.intercept_))
        statement = estimator.privacy_
        no_budget = estimator.epsilon is not None and estimator.epsilon == math.inf
        assert statement.epsilon > 0.0  # NaN fails
        assert math.isfinite(statement.epsilon) or no_budget
        if math.isfinite(statement.epsilon):
            assert all(record.noise_stddev > 0.0 for record in statement.releases)
    return "fitted"


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_a_constructor_parameter_is_refused_or_gives_a_finite_fit(
    cls, data, tried, examples
):
    names = sorted(set(inspect.signature(cls).parameters) - {"verbose"})

    @examples(25)
    @given(name=st.sampled_from(names), value=odd)
    def attempt(name, value):
        tried.append(outcome(cls, options_of(cls) | {name: value}, *data))

    attempt()


entries = st.one_of(
    st.floats(-1e3, 1e3),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e300, 5e-324, SECRET]),
)
shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)
matrices = st.one_of(
    hnp.arrays(np.float64, shapes, elements=entries),
    hnp.arrays(np.float64, st.tuples(st.just(6), st.just(3)), elements=entries),
    hnp.arrays(st.sampled_from([np.int8, np.uint64, np.bool_, np.float16]), (6, 3)),
    hnp.arrays(np.complex64, (6, 3)),
    hnp.arrays(np.dtype("U4"), (6, 3)),
    st.just(np.full((6, 3), SECRET, object)),
    st.just([["a", SECRET]] * 6),
    st.just([[1.0], [1.0, SECRET]]),
    st.none(),
    st.text(max_size=3),
)
targets = st.one_of(
    st.just(np.array([0, 1, 0, 1, 0, 1])),
    hnp.arrays(np.float64, st.tuples(st.integers(0, 7)), elements=entries),
    hnp.arrays(np.int64, shapes, elements=st.integers(-2, 3)),
    st.just(["a", "b", "a", "b", "a", "8731"]),
    st.just([0, 1, None, 1, 0, SECRET]),
    st.none(),
)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_an_array_is_refused_or_gives_a_finite_fit(cls, tried, examples):
    @examples(25)
    @given(X=matrices, y=targets, classes=st.sampled_from([None, range(2)]))
    def attempt(X, y, classes):
        options = options_of(cls)
        if "classes" in inspect.signature(cls).parameters:
            options |= {"classes": classes}
        tried.append(outcome(cls, options, X, y))

    attempt()


groups = st.one_of(
    st.none(),
    st.text(max_size=13),
    hnp.arrays(np.int64, st.integers(0, 13), elements=st.integers(0, 3)),
    hnp.arrays(np.float64, 12, elements=st.floats()),
    st.lists(st.one_of(numbers, st.text(max_size=2), st.none()), max_size=13),
    st.lists(st.integers(-(2**70), 2**70), min_size=12, max_size=12),
    st.lists(st.text(max_size=2), min_size=12, max_size=12),
    st.lists(st.binary(max_size=2), min_size=12, max_size=12),
    st.just(["8731"] * 11 + [None]),
    st.just([[1]] * 12),
    st.builds(Strange),
)


def test_users_are_refused_or_give_a_finite_fit(data, tried, examples):
    """Whose statement then speaks of users, of whom so many records count."""

    @examples(60)
    @given(users=groups, size=st.one_of(st.integers(1, 4), odd))
    def attempt(users, size):
        options = {"user_bound": "count", "classes": range(2)}
        clf = linear.DPLeastSquares(max_group_size=size, **options)
        try:
            clf.fit(*data, groups=users)
        except REFUSALS as error:
            tried.append(refused(error))
            return
        assert np.all(np.isfinite(clf.coef_))
        assert clf.privacy_.unit == ("record" if users is None else "user")
        assert size is None or clf.privacy_.releases[0].l2_sensitivity > size * 0.9
        tried.append("fitted")

    attempt()


candidates = st.one_of(
    odd,
    st.dictionaries(
        st.sampled_from(["ridge", "alpha", "clip_norm", "epsilon", "center", "x"]),
        st.one_of(odd, st.lists(odd, max_size=3)),
        max_size=2,
    ),
    st.just({"ridge": [1.0, 10.0]}),
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_search_is_refused_or_states_a_number(data, tried, examples):
    names = ["epsilon", "delta", "mean_runs", "eta", "validation_fraction", "scoring"]

    @examples(40)
    @given(
        grid=candidates,
        name=st.sampled_from([*names, "estimator", "random_state", "ledger"]),
        value=odd,
    )
    def attempt(grid, name, value):
        estimator = linear.DPLeastSquares(classes=range(2))
        given = {"estimator": estimator, "param_distributions": grid, "mean_runs": 2.0}
        search = DPRandomizedSearch(**(given | {name: value}))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                search.fit(*data)
            except REFUSALS as error:
                tried.append(refused(error))
                return
        assert search.privacy_.epsilon > 0.0  # NaN fails
        assert math.isfinite(search.privacy_.epsilon) or search.epsilon == math.inf
        assert np.all(np.isfinite(search.best_estimator_.coef_))
        tried.append("searched")

    attempt()


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_predictions_are_finite_or_refused(cls, data, tried, examples):
    with pytest.raises(NotFittedError):
        cls().predict(data[0])
    fitted = cls(**options_of(cls)).fit(*data)

    @examples(20)
    @given(X=matrices)
    def attempt(X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = fitted.predict(X)
            except REFUSALS as error:
                tried.append(refused(error))
                return
        assert np.all(np.isfinite(found))
        tried.append("predicted")

    attempt()


def test_accounting_is_refused_or_a_number(tried, examples):
    @examples(60)
    @given(one=odd, two=odd, name=st.sampled_from(["rho", "noise_multiplier", "delta"]))
    def attempt(one, two, name):
        for call in (
            lambda: gaussian_epsilon(one, two),
            lambda: gaussian_mu(one, two),
            lambda: zcdp_epsilon(one, two),
            lambda: plan_releases([Query("a", 1.0)], **{name: one}).epsilon,
            lambda: plan_releases([Query("a", one)], epsilon=two).epsilon,
        ):
            try:
                found = call()
            except REFUSALS:
                tried.append("refused")
                continue
            assert found >= 0.0  # NaN fails
            tried.append("answered")

    attempt()
