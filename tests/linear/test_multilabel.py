"""Records that carry several labels: ``y`` as an indicator matrix."""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPNearestMean,
    DPNewton,
    open_features,
)
from privfeat.data import write_features
from privfeat.exceptions import PrivacyWarning
from privfeat.persistence import load, save
from tests import reference
from tests.linear.conftest import ESTIMATORS, indicators
from tests.linear.replaying import (
    answered,
    assert_same_state,
    check_sensitivity,
    recorded,
)

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
FITS = {
    "ls": (DPLeastSquares, {"ridge": 2.0}),
    "ls-class": (DPLeastSquares, {"ridge": 2.0, "class_gram": True, "alpha": 0.5}),
    "newton": (DPNewton, {"n_iter": 2, "ridge": 2.0}),
    "fc": (DPFC, {"n_iter": 3, "ridge": 3.0, "learning_rate": 0.7}),
    "fc-squared": (
        DPFC,
        {"n_iter": 3, "ridge": 3.0, "learning_rate": 0.7, "loss": "squared"},
    ),
    "adam": (DPAdamLinear, {"n_iter": 3, "learning_rate": 0.05, "iterate": "last"}),
    "adam-squared": (
        DPAdamLinear,
        {"n_iter": 3, "learning_rate": 0.05, "iterate": "last", "loss": "squared"},
    ),
}


@pytest.fixture(params=[cls for cls in ESTIMATORS if cls is not DPNearestMean])
def estimator(request):
    """Those that take several labels a record."""
    return request.param


@pytest.fixture(params=FITS)
def fit(request):
    return FITS[request.param]


def first_labels(carried, max_labels):
    return [set(sorted(labels)[:max_labels]) for labels in carried]


@pytest.mark.parametrize("max_labels", [1, 2, 3, 7])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_fit_on_neighbours_differs_by_the_declared_sensitivity_alone(
    fit, adjacency, max_labels, several_labels, spy
):
    cls, options = fit
    X, Y, _ = several_labels

    def make():
        return cls(
            epsilon=2.0,
            adjacency=adjacency,
            max_labels=max_labels,
            random_state=0,
            **options,
        )

    changed, opposite = X.copy(), X.copy()
    changed[7] = [1e4, 0.0, 0.0, 0.0]
    opposite[7] = -changed[7]

    def carrying(labels):
        return np.concatenate([Y[:7], indicators([labels]), Y[8:]])

    for one, others in [({0, 1, 2}, [{0, 1, 2}, set()]), ({0, 1}, [{1, 2}])]:
        first, calls = recorded(spy, make, (changed, carrying(one)))
        neighbours = [(opposite, carrying(labels)) for labels in others]
        if adjacency == "add_remove":
            neighbours = [(np.delete(X, 7, axis=0), np.delete(Y, 7, axis=0))]
        for other in neighbours:
            second, other_calls = answered(spy, make, calls, other)
            check_sensitivity(first.privacy_, calls, other_calls)
            assert_same_state(first, second)


@pytest.mark.parametrize("max_labels", [1, 2, 3])
def test_fit_declares_the_bounds_for_several_labels(max_labels, several_labels):
    X, Y, _ = several_labels
    clf = DPLeastSquares(class_gram=True, max_labels=max_labels, center=False)
    clf.fit(X, Y)
    found = {record.name: record.l2_sensitivity for record in clf.privacy_.releases}
    root = math.sqrt(max_labels)
    expected = {"gram": 1.0, "class_sums": root, "class_grams": root}
    assert found == pytest.approx(expected, rel=1e-6)
    clf = DPNewton(max_labels=max_labels, center=False, gradient_clip_norm=None)
    clf.fit(X, Y)
    found = {record.name: record.l2_sensitivity for record in clf.privacy_.releases}
    # the residual of a label of probability one half
    expected = {"gradient": math.sqrt(3.0) / 2.0, "hessian": math.sqrt(3.0) / 4.0}
    assert found == pytest.approx(expected, rel=1e-6)


def expected_coef(cls, options, rows, carried):
    options = dict(options)
    if cls is DPLeastSquares:
        options.setdefault("class_gram", False)
        return reference.least_squares(rows, carried, 3, **options)
    options.setdefault("loss", "sigmoid")
    options.setdefault("learning_rate", 1.0)
    algorithm = reference.newton if cls is DPNewton else reference.feature_covariance
    bound = 1.0 if cls is DPNewton else 0.75
    options["clip_norm" if cls is DPAdamLinear else "gradient_clip_norm"] = bound
    if cls is DPAdamLinear:
        options["optimizer"] = "adam"
        algorithm = reference.first_order
    return algorithm(rows, carried, np.zeros((3, 4)), **options)


@pytest.mark.parametrize("max_labels", [1, 2, 3])
@pytest.mark.parametrize("center", [True, False])
def test_fit_with_hardly_any_noise_equals_the_reference(
    fit, center, max_labels, several_labels
):
    cls, options = fit
    X, Y, carried = several_labels
    clf = cls(
        noise_multiplier=1e-5,
        max_labels=max_labels,
        center=center,
        fit_intercept=False,
        **options,
    ).fit(X, Y)
    if center:
        mean = reference.feature_mean(X, row_scaling="unit")
        X = reference.centred(X, mean, row_scaling="unit")
    rows = reference.bounded_rows(X, clip_norm=1.0, row_scaling="unit")
    kept = first_labels(carried, max_labels)
    expected = expected_coef(cls, options, rows, kept)
    np.testing.assert_allclose(
        clf.coef_, expected, atol=1e-3 * np.max(np.abs(expected))
    )


def test_fit_drops_labels_within_the_record(fit, several_labels):
    """Bit for bit: the first labels in the order of the columns count."""
    cls, options = fit
    X, Y, carried = several_labels
    cut = indicators(first_labels(carried, 2))
    assert np.any(cut != Y)
    one, two = (
        cls(max_labels=2, random_state=0, **options).fit(X, y) for y in (Y, cut)
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_fit_keeps_the_order_of_the_columns(estimator, several_labels):
    X, Y, _ = several_labels
    clf = estimator(classes=["c", "a", "b"], random_state=0).fit(X, Y)
    assert clf.classes_.tolist() == ["c", "a", "b"]
    unnamed = estimator(random_state=0).fit(X, Y)
    assert unnamed.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(clf.coef_, unnamed.coef_)


def test_fit_warns_of_columns_that_are_read(estimator, several_labels):
    """The columns of scikit-learn's MultiLabelBinarizer are the labels that occur."""
    X, Y, _ = several_labels
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        named = estimator(max_labels=2, classes=range(3)).fit(X, Y)
    assert named.privacy_.public[1] == "the set of 3 classes (given)"
    with pytest.warns(PrivacyWarning, match="columns of an indicator matrix"):
        clf = estimator(max_labels=2).fit(X, Y)
    assert clf.privacy_.public[1:3] == (
        "the set of 3 classes (columns of y)",
        "that of a record's labels the first 2 count",
    )


@pytest.mark.parametrize("n_columns", [1, 2])
def test_fit_keeps_a_row_of_coefficients_for_every_column(
    estimator, n_columns, several_labels
):
    """Two labels need not exclude each other; one may be there or not."""
    X, Y, _ = several_labels
    y = Y[:, :n_columns]
    clf = estimator(epsilon=math.inf, classes=range(n_columns), max_labels=2).fit(X, y)
    assert clf.multilabel_
    assert clf.coef_.shape == (n_columns, 4)
    assert clf.decision_function(X).shape == clf.predict_proba(X).shape == y.shape
    assert clf.predict(X).shape == y.shape
    assert np.mean(clf.predict(X) == y) > 0.7
    if n_columns == 1:
        other = estimator(epsilon=math.inf).fit(X, sparse.csr_array(y))
        np.testing.assert_array_equal(other.coef_, clf.coef_)


def test_predict_takes_the_labels_above_one_half(fit, several_labels):
    cls, options = fit
    X, Y, _ = several_labels
    clf = cls(epsilon=math.inf, max_labels=3, center=False, **options).fit(X, Y)
    probabilities = clf.predict_proba(X)
    np.testing.assert_array_equal(clf.predict(X), probabilities > 0.5)
    scores = clf.decision_function(X)
    if clf._loss(multilabel=True) == "sigmoid":
        np.testing.assert_array_equal(clf.predict(X), scores > 0.0)
        np.testing.assert_allclose(probabilities, expit(scores))
    elif not getattr(clf, "class_gram", False):
        np.testing.assert_array_equal(clf.predict(X), scores > 0.5)
        np.testing.assert_allclose(probabilities, np.clip(scores, 0, 1), atol=1e-15)
    if cls is not DPAdamLinear:  # its few steps are small
        assert np.mean(clf.predict(X) == Y) > 0.7


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
def test_predict_proba_of_class_grams_are_frequencies(alpha):
    """One row for each of two kinds of records: labels of 80 % and 30 % of them."""
    X = np.repeat(np.eye(2), 10, axis=0)
    Y = np.zeros((20, 2), int)
    Y[:8, 0] = Y[10:13, 0] = Y[:10, 1] = 1
    clf = DPLeastSquares(
        epsilon=math.inf,
        class_gram=True,
        alpha=alpha,
        ridge=1e-9,
        max_labels=2,
        center=False,
    ).fit(X, Y)
    found = clf.predict_proba(np.eye(2))
    np.testing.assert_allclose(found, [[0.8, 1.0], [0.3, 0.0]], atol=1e-4)


def test_fit_on_a_file_equals_fit_in_memory(fit, several_labels, tmp_path):
    cls, options = fit
    X, Y, _ = several_labels
    write_features(tmp_path / "multi.h5", {"train": (X.astype(np.float32), Y)})
    split = open_features(tmp_path / "multi.h5")["train"]
    lazy, memory = (
        cls(random_state=0, max_labels=2, **options).fit(features, split.y)
        for features in (split.X, split.X[:])
    )
    np.testing.assert_array_equal(lazy.coef_, memory.coef_)
    assert lazy.privacy_ == memory.privacy_


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_load_returns_what_was_saved(estimator, n_columns, several_labels, tmp_path):
    X, Y, _ = several_labels
    Y = Y[:, :n_columns]
    clf = estimator(classes=range(n_columns), max_labels=2).fit(X, Y)
    save(clf, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.multilabel_ is True
    assert loaded.get_params() == clf.get_params()
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
