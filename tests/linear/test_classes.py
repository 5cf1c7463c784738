"""Many classes, rare ones, and two."""

import math

import numpy as np
import pandas as pd
import pytest

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNewton
from privfeat.core.bounds import sensitivity
from tests.combinations import few

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
ITERATIVE = [DPNewton, DPFC, DPAdamLinear]
N_CLASSES = 1000


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("cls", [*ITERATIVE, DPLeastSquares])
def test_fit_on_a_thousand_classes_declares_no_more_noise(cls, adjacency, spy):
    """Every sum is within its bound, which for the softmax is that of three."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.integers(0, N_CLASSES, 50)
    options = {} if cls is DPLeastSquares else {"n_iter": 2}
    clf = cls(classes=range(N_CLASSES), adjacency=adjacency, **options)
    clf.fit(X[:1], y[:1])
    single = {}
    for call in spy.calls:
        single[call.name] = single.get(call.name, 0.0) + np.sum(call.exact**2)
    for record in clf.privacy_.releases:
        norm = math.sqrt(single[record.name] / record.count)
        assert norm <= record.l2_sensitivity
    three = cls(classes=range(3), adjacency=adjacency, **options).fit(X, y % 3)
    assert clf.privacy_.releases == three.privacy_.releases
    clf.fit(X, y)
    assert clf.coef_.shape == (N_CLASSES, 3)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("clip_norm", few(1, [1.0, None]))
def test_newton_uses_the_softmax_bounds_for_a_thousand_classes(clip_norm):
    X, y = np.eye(3), np.arange(3)
    clf = DPNewton(
        classes=range(N_CLASSES), n_iter=2, center=False, gradient_clip_norm=clip_norm
    )
    bounds = (1.0, "softmax", N_CLASSES, "add_remove")
    gradient = sensitivity.clipped_gradient(1.0, "add_remove")
    if clip_norm is None:
        gradient = sensitivity.loss_gradient(*bounds)
        assert gradient == pytest.approx(math.sqrt(2.0), rel=1e-6)
    releases = clf.fit(X, y).privacy_.releases
    assert {record.name: record.l2_sensitivity for record in releases} == {
        "gradient": gradient,
        "gram": sensitivity.gram(1.0, "add_remove"),
        "hessian": sensitivity.curvature_grams(*bounds),
    }


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_newton_of_one_step_has_the_residuals_of_public_probabilities(n_classes, spy):
    """One record alone: the bound is attained, and far below that of any softmax."""
    X, y = np.array([[1.0, 2.0]]), np.array([1])
    options = {"classes": range(n_classes), "center": False, "clip_norm": 0.3}
    clf = DPNewton(**options).fit(X, y)
    bound = clf.privacy_.releases[0].l2_sensitivity
    assert bound == pytest.approx(0.3 * math.sqrt(1 - 1 / n_classes), rel=1e-5)
    (gradient,) = spy.of("gradient")
    assert 0.9999 * bound < np.linalg.norm(gradient.exact) <= bound
    more = DPNewton(n_iter=2, **options).fit(X, y).privacy_.releases[0]
    assert more.l2_sensitivity == pytest.approx(0.3 * math.sqrt(2.0), rel=1e-5)


@pytest.mark.parametrize("intercept_init", [0.0, -3.0, 1e6])
def test_newton_of_one_sigmoid_step_has_the_residuals_of_its_intercept(
    intercept_init, spy
):
    """A bad start is not clipped: it is public as well."""
    X, y = np.array([[1.0, 2.0]]), np.array([intercept_init < 0.0])
    options = {"classes": [False, True], "center": False, "clip_norm": 0.3}
    clf = DPNewton(loss="sigmoid", intercept_init=intercept_init, **options).fit(X, y)
    bound = clf.privacy_.releases[0].l2_sensitivity
    expected = 0.3 / (1.0 + math.exp(-abs(intercept_init)))
    assert bound == pytest.approx(expected, rel=1e-5)
    (gradient,) = spy.of("gradient")
    assert 0.9999 * bound < np.linalg.norm(gradient.exact) <= bound


@pytest.mark.parametrize("n_iter", [1, 2, 3])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_newton_releases_one_matrix_in_the_first_step_of_the_softmax(
    loss, n_iter, three_classes, spy
):
    """Later steps, and all of the sigmoid, release one block for each class."""
    DPNewton(loss=loss, n_iter=n_iter, classes=range(3)).fit(*three_classes)
    first = (
        ["gradient", "gram"] if loss == "softmax" else ["gradient", *["hessian"] * 3]
    )
    later = ["gradient", *["hessian"] * 3] * (n_iter - 1)
    assert [call.name for call in spy.calls] == ["feature_mean", *first, *later]


def test_newton_releases_one_matrix_by_default(three_classes, spy):
    DPNewton(classes=range(3)).fit(*three_classes)
    shapes = [call.exact.shape for call in spy.calls]
    assert shapes == [(1, 5), (3, 5), (5, 5)]  # with a constant coordinate


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
@pytest.mark.parametrize("cls", ITERATIVE)
def test_fit_on_rare_classes_keeps_the_shapes(cls, loss):
    """One record of a class, or none, beside ninety-nine of another."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 4)), np.zeros(100, int)
    for rare in (0, 1):
        y[:rare] = 1
        clf = cls(classes=range(3), loss=loss, n_iter=2).fit(X, y)
        assert clf.coef_.shape == (3, 4)
        assert clf.predict_proba(X).shape == (100, 3)
        binary = cls(classes=range(2), loss=loss, n_iter=2).fit(X, y)
        assert binary.coef_.shape == (1, 4)
        assert binary.predict_proba(X).shape == (100, 2)


def test_fit_learns_a_common_class_beside_a_rare_one(estimator):
    rng = np.random.default_rng(0)
    y = (np.arange(2000) < 40).astype(int)
    X = np.eye(2)[y] + 0.1 * rng.normal(size=(2000, 2))
    # a boundary through the mean is none between 98 % and 2 % of the records
    clf = estimator(epsilon=2.0, classes=range(2), center=False).fit(X, y)
    assert clf.score(X, y) > 0.97


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    ("loss", "factor"), [("softmax", math.sqrt(2)), ("sigmoid", math.sqrt(3))]
)
@pytest.mark.parametrize("cls", ITERATIVE)
def test_fit_declares_the_smaller_of_two_gradient_bounds(cls, loss, factor, adjacency):
    """Of rows of norm 0.1 no gradient is as long as the clip at 1, or as at 100."""
    X, y = np.eye(3), np.arange(3)
    for clip_norm, gradient_clip_norm, expected in [
        (0.1, 1.0, 0.1 * factor),
        (0.1, 100.0, 0.1 * factor),
        (2.0, 1.0, 1.0),
    ]:
        clf = cls(
            classes=range(3),
            adjacency=adjacency,
            loss=loss,
            n_iter=2,
            clip_norm=clip_norm,
            gradient_clip_norm=gradient_clip_norm,
        )
        bounds = {r.name: r.l2_sensitivity for r in clf.fit(X, y).privacy_.releases}
        pair = 2.0 if adjacency == "replace_one" else 1.0
        assert bounds["gradient"] == pytest.approx(pair * expected, rel=1e-5)


@pytest.mark.parametrize(
    ("gram_clip_norm", "radius"), [(None, 0.5), (5, 0.5), (0.2, 0.2)]
)
def test_fc_declares_the_smaller_of_two_row_bounds(gram_clip_norm, radius, spy):
    X, y = np.eye(3), np.arange(3)
    clf = DPFC(classes=range(3), clip_norm=0.5, gram_clip_norm=gram_clip_norm, n_iter=1)
    clf.fit(X, y)
    bounds = {r.name: r.l2_sensitivity for r in clf.privacy_.releases}
    assert bounds["gram"] == pytest.approx(radius**2, rel=1e-5)
    (gram,) = spy.of("gram")  # three orthogonal rows, all as long as is allowed
    assert np.trace(gram.exact) == pytest.approx(3 * radius**2, rel=1e-4)


@pytest.mark.parametrize("names", [{}, {"__name__": None}])
def test_code_without_a_module_may_fit(names):
    """As ``exec`` and ``timeit`` run it."""
    clf = DPLeastSquares(classes=range(3))
    exec("clf.fit(X, y)", names | {"clf": clf, "X": np.eye(3), "y": [0, 1, 2]})
    assert clf.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize(("kind", "other"), [("int64", "float64"), ("int64", "uint64")])
def test_classes_that_floats_cannot_tell_apart_are_refused(kind, other):
    """2**60 as a float is equal to both classes."""
    classes = np.array([2**60, 2**60 + 1], kind)
    X, y = np.eye(4), classes[[0, 1, 0, 1]]
    assert DPLeastSquares(classes=classes).fit(X, y).classes_.tolist() == [*classes]
    with pytest.raises(ValueError, match=r"classes must be below 2\*\*53"):
        DPLeastSquares(classes=classes).fit(X, y.astype(other))


@pytest.mark.parametrize("kind", [list, lambda classes: np.array(classes, object)])
def test_classes_in_a_box_are_those_that_floats_cannot_tell_apart(kind):
    """Classes of objects were compared as floats: two became one."""
    X, classes = np.eye(3), kind([2**53, 2**53 + 1, 2**53 + 2])
    clf = DPLeastSquares(epsilon=math.inf, classes=classes, center=False)
    assert clf.fit(X, np.array(classes)).classes_.dtype == np.int64
    labels = pd.array(classes, dtype="Int64")  # which scikit-learn makes floats
    with pytest.raises(ValueError, match=r"classes must be below 2\*\*53"):
        clf.fit(X, labels)
