import math

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.exceptions import NotFittedError

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNearestMean, DPNewton

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
MODELS = {
    "squared": (DPLeastSquares, {}),
    "softmax": (DPNewton, {}),
    "sigmoid": (DPFC, {"loss": "sigmoid", "learning_rate": 1.0}),
    "adam": (DPAdamLinear, {"fit_intercept": True}),
    "nearest": (DPNearestMean, {}),
}


@pytest.fixture(params=MODELS)
def model(request):
    cls, options = MODELS[request.param]
    return cls(epsilon=math.inf, **options)


@pytest.fixture(params=[True, False], ids=["center", "raw"])
def center(request):
    return request.param


@pytest.fixture(params=["two_classes", "three_classes"])
def data(request):
    return request.getfixturevalue(request.param)


def test_decision_function_is_linear_in_the_unit_row(model, center, data):
    X, _ = data
    model.set_params(center=center).fit(*data)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    if center:
        rows -= model.center_
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.any(model.center_) == center
    expected = np.squeeze(rows @ model.coef_.T + model.intercept_)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-12)


def test_decision_function_of_raw_rows_is_linear_in_them(model, center, data):
    X, _ = data
    model.set_params(row_scaling="clip", center=center).fit(*data)
    rows = X - model.center_
    expected = np.squeeze(rows @ model.coef_.T + model.intercept_)
    assert np.any(model.center_) == center
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1e300])
def test_decision_function_of_unit_rows_ignores_their_scale(model, data, scale):
    X, _ = data
    model.fit(*data)
    np.testing.assert_allclose(
        model.decision_function(X * scale), model.decision_function(X), atol=1e-9
    )


def test_decision_function_of_the_center_is_the_intercept(model, center, data):
    model.set_params(center=center, row_scaling="clip" if center else "unit")
    model.fit(*data)
    scores = model.decision_function(model.center_[None])
    np.testing.assert_allclose(np.ravel(scores), model.intercept_)


def test_predict_takes_the_highest_score(model, data):
    X, _ = data
    scores = model.fit(*data).decision_function(X)
    best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
    np.testing.assert_array_equal(model.predict(X), model.classes_[best])


def test_predict_proba_is_a_distribution_that_agrees_with_predict(model, data):
    X, _ = data
    probabilities = model.fit(*data).predict_proba(X)
    assert probabilities.shape == (len(X), len(model.classes_))
    assert np.all(probabilities >= 0.0)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    best = model.classes_[probabilities.argmax(axis=1)]
    np.testing.assert_array_equal(best, model.predict(X))


def test_predict_proba_of_softmax(three_classes):
    X, y = three_classes
    clf = DPNewton(epsilon=math.inf).fit(X, y)
    expected = softmax(clf.decision_function(X), axis=1)
    np.testing.assert_allclose(clf.predict_proba(X), expected)


def test_predict_proba_of_sigmoid_normalizes(three_classes):
    X, y = three_classes
    clf = DPNewton(epsilon=math.inf, loss="sigmoid").fit(X, y)
    expected = expit(clf.decision_function(X))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(X), expected)


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_predict_proba_of_two_classes_is_the_sigmoid(two_classes, loss):
    X, y = two_classes
    clf = DPNewton(epsilon=math.inf, loss=loss).fit(X, y)
    expected = expit(clf.decision_function(X))
    np.testing.assert_allclose(clf.predict_proba(X)[:, 1], expected)


def test_predict_proba_of_squared_projects_on_the_simplex(three_classes):
    """The nearest distribution: no other comes closer (checked on a grid)."""
    X, y = three_classes
    clf = DPLeastSquares(epsilon=math.inf, alpha=0.0).fit(X, y)
    clf.coef_ = clf.coef_ * 3.0
    scores, found = clf.decision_function(X), clf.predict_proba(X)
    steps = np.linspace(0.0, 1.0, 41)
    grid = np.array([(a, b, 1 - a - b) for a in steps for b in steps if a + b <= 1])
    for score, probabilities in zip(scores, found, strict=True):
        nearest = np.min(np.linalg.norm(grid - score, axis=1))
        assert np.linalg.norm(probabilities - score) <= nearest + 1e-9


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_prediction_wants_a_fit_first(estimator, method):
    with pytest.raises(NotFittedError):
        getattr(estimator(), method)(np.ones((2, 4)))


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize("shape", [(2, 3), (4,), (0, 4)])
def test_prediction_refuses_a_wrong_shape(estimator, method, shape, three_classes):
    clf = estimator().fit(*three_classes)
    with pytest.raises(ValueError, match=r"features|2D|0 sample"):
        getattr(clf, method)(np.ones(shape))


def test_prediction_refuses_nan(estimator, three_classes):
    clf = estimator().fit(*three_classes)
    with pytest.raises(ValueError, match="NaN"):
        clf.predict([[math.nan, 0.0, 0.0, 0.0]])
