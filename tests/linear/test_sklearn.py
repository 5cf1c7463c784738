"""The estimators as scikit-learn's tools use them."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from privfeat import DPFC, DPAdamLinear, PrivacyWarning
from tests.linear.conftest import ESTIMATORS, passes

DEFAULT_STEPS = {DPFC: 20, DPAdamLinear: 12}

pytestmark = pytest.mark.filterwarnings(
    "ignore::privfeat.exceptions.PrivacyWarning",
    "ignore::sklearn.exceptions.SkipTestWarning",
)


@parametrize_with_checks([cls() for cls in ESTIMATORS[:2]])
def test_estimator_passes_every_check_of_sklearn(estimator, check):
    passes(estimator, check)


@pytest.mark.slow
@parametrize_with_checks([cls() for cls in ESTIMATORS[2:]])
def test_other_estimators_pass_every_check_of_sklearn(estimator, check):
    passes(estimator, check)


@pytest.mark.slow
@parametrize_with_checks(
    [
        cls(**options)
        for cls in ESTIMATORS
        for options in ({"epsilon": np.inf}, {"epsilon": 1, "arithmetic": "exact"})
    ]
)
def test_other_modes_pass_every_check_of_sklearn(estimator, check):
    passes(estimator, check)


def test_estimator_works_at_the_end_of_a_pipeline(estimator, three_classes):
    X, y = three_classes
    pipeline = make_pipeline(FunctionTransformer(np.tanh), estimator(epsilon=np.inf))
    expected = estimator(epsilon=np.inf).fit(np.tanh(X), y).predict(X=np.tanh(X))
    np.testing.assert_array_equal(pipeline.fit(X, y).predict(X), expected)


def test_estimator_works_in_a_grid_search(estimator, three_classes):
    search = GridSearchCV(estimator(classes=range(3)), {"epsilon": [0.1, np.inf]}, cv=2)
    search.fit(*three_classes)
    assert search.best_estimator_.classes.stop == 3
    assert set(search.cv_results_["param_epsilon"]) == {0.1, np.inf}


def test_estimator_works_in_cross_validation(estimator, three_classes):
    scores = cross_val_score(estimator(epsilon=np.inf), *three_classes, cv=3)
    assert np.mean(scores) > 0.6


def test_clone_copies_parameters_and_nothing_fitted(estimator, three_classes):
    clf = estimator(epsilon=3.0, classes=[0, 1, 2]).fit(*three_classes)
    copy = clone(clf)
    assert copy.get_params() == clf.get_params()
    assert not [name for name in vars(copy) if name.endswith("_")]


def test_pickle_keeps_the_fitted_state(estimator, three_classes):
    clf = estimator(epsilon=3.0).fit(*three_classes)
    copy = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copy.coef_, clf.coef_)
    assert copy.privacy_ == clf.privacy_


def test_set_params_changes_the_next_fit(estimator, three_classes):
    clf = estimator(epsilon=1.0).fit(*three_classes)
    assert clf.set_params(epsilon=2.0).fit(*three_classes).privacy_.epsilon == 2.0


def test_fit_remembers_the_names_of_columns(estimator, three_classes):
    pandas = pytest.importorskip("pandas")
    X, y = three_classes
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    clf = estimator(epsilon=np.inf).fit(frame, pandas.Series(y))
    assert clf.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(
        clf.predict(frame), estimator(epsilon=np.inf).fit(X, y).predict(X)
    )
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame.rename(columns={"a": "other"}))


def test_fit_leaves_the_parameters_alone(estimator, three_classes):
    options = {"epsilon": np.float32(2.0), "classes": [2, 1, 0], "clip_norm": 1}
    clf = estimator(**options)
    before = dict(clf.get_params())
    clf.fit(*three_classes)
    assert list(before) == list(clf.get_params())
    assert all(value is before[name] for name, value in clf.get_params().items())
    assert options["classes"] == [2, 1, 0]


def test_fit_leaves_the_data_alone(estimator, three_classes):
    X, y = three_classes
    X_before, y_before = X.copy(), y.copy()
    X.setflags(write=False)
    estimator().fit(X, y)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)


def test_fit_returns_the_estimator_with_its_attributes(estimator, three_classes):
    X, y = three_classes
    clf = estimator()
    assert clf.fit(X, y) is clf
    assert clf.coef_.shape == (3, 4)
    assert clf.intercept_.shape == (3,)
    assert clf.coef_.dtype == clf.intercept_.dtype == np.float64
    assert type(clf.coef_) is type(clf.intercept_) is np.ndarray
    assert clf.n_features_in_ == 4
    assert clf.n_iter_ == (getattr(clf, "n_iter", 1) or DEFAULT_STEPS[estimator])
    assert clf.classes_.tolist() == [0, 1, 2]


def test_fit_warns_of_weak_choices(estimator, three_classes):
    with pytest.warns(PrivacyWarning) as caught:
        estimator(random_state=0, delta=0.01).fit(*three_classes)
    assert [str(w.message).split()[0] for w in caught] == [
        "classes=None",
        "random_state",
        "delta",
    ]
    assert {w.filename for w in caught} == {__file__}


def test_fit_does_not_warn_without_reason(estimator, three_classes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator(classes=[0, 1, 2]).fit(*three_classes)
