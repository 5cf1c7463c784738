"""Matrices of labels that a fit accepts or refuses."""

import math

import numpy as np
import pytest
from scipy import sparse

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNewton

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.mark.parametrize(
    "convert",
    [
        lambda Y: Y.tolist(),
        lambda Y: Y.astype(bool),
        lambda Y: Y.astype(np.float32),
        lambda Y: np.asfortranarray(Y),
        sparse.csr_array,
        sparse.csc_matrix,
        lambda Y: sparse.coo_array(Y.astype(bool)),
    ],
)
def test_fit_accepts_any_form_of_the_matrix(convert, several_labels):
    X, Y, _ = several_labels
    given = convert(Y)
    one, two = (
        DPFC(n_iter=2, max_labels=2, random_state=0).fit(X, y) for y in (Y, given)
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.score(X, given) == one.score(X, Y)


def test_fit_leaves_a_sparse_matrix_alone(several_labels):
    """Explicit zeros and columns out of order, which reading it would tidy."""
    X, _, _ = several_labels
    explicit = sparse.csr_array(
        ([0, 1, 1], [2, 1, 0], [0, 3] + [3] * 39), shape=(40, 3)
    )
    before = explicit.data.tolist(), explicit.indices.tolist()
    clf = DPLeastSquares(random_state=0, max_labels=2).fit(X, explicit)
    assert (explicit.data.tolist(), explicit.indices.tolist()) == before
    same = DPLeastSquares(random_state=0, max_labels=2).fit(X, explicit.toarray())
    np.testing.assert_array_equal(clf.coef_, same.coef_)


@pytest.mark.parametrize(
    "bad", [2, -1, 0.5, math.nan, "1"], ids=["two", "negative", "half", "nan", "text"]
)
def test_fit_refuses_other_entries(estimator, bad, several_labels):
    X, Y, _ = several_labels
    Y = Y.astype(type(bad) if isinstance(bad, str) else float)
    Y[5, 1] = bad
    clf = estimator()
    with pytest.raises(ValueError, match=r"0 and 1|NaN"):
        clf.fit(X, Y)
    assert not hasattr(clf, "privacy_")


def test_fit_refuses_duplicate_entries_of_a_sparse_matrix(several_labels):
    matrix = sparse.coo_array(([1, 1], ([0, 0], [1, 1])), shape=(40, 3))
    with pytest.raises(ValueError, match="0 and 1 only"):
        DPLeastSquares().fit(several_labels[0], matrix)


def test_fit_refuses_entries_of_a_sparse_matrix_that_only_add_up_to_one(several_labels):
    """In which order they are added up would depend on the other records."""
    matrix = sparse.csr_array(([0.5, 0.5], [1, 1], [0, 2, *[2] * 39]), shape=(40, 3))
    with pytest.raises(ValueError, match="0 and 1 only"):
        DPLeastSquares().fit(several_labels[0], matrix)


@pytest.mark.parametrize("cls", [DPNewton, DPFC, DPAdamLinear])
def test_fit_refuses_the_softmax(cls, several_labels):
    X, Y, _ = several_labels
    with pytest.raises(ValueError, match="loss must not be 'softmax'"):
        cls(loss="softmax").fit(X, Y)


@pytest.mark.parametrize("classes", [[0, 1], range(4), [0, 0, 1], "abc", [[0, 1, 2]]])
def test_fit_refuses_classes_that_do_not_name_the_columns(
    estimator, classes, several_labels
):
    X, Y, _ = several_labels
    with pytest.raises(ValueError, match="classes must"):
        estimator(classes=classes).fit(X, Y)


def test_fit_refuses_numbers_of_columns_in_another_order(several_labels):
    """Labels would have changed places; columns that count up are no names."""
    X, Y, _ = several_labels
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(Y, columns=[2, 1, 0])
    with pytest.raises(ValueError, match="columns of y in their order"):
        DPFC(n_iter=2, classes=range(3)).fit(X, frame)
    clf = DPFC(n_iter=2, classes=[5, 6, 7]).fit(X, pandas.DataFrame(Y))
    assert clf.classes_.tolist() == [5, 6, 7]


def test_fit_refuses_classes_that_are_not_the_named_columns(several_labels):
    X, Y, _ = several_labels
    pandas = pytest.importorskip("pandas")
    names = [f"label {i}" for i in range(Y.shape[1])]
    frame = pandas.DataFrame(Y, columns=names)
    clf = DPFC(n_iter=2, classes=names).fit(X, frame)
    assert clf.classes_.tolist() == names
    with pytest.raises(ValueError, match="columns of y in their order"):
        DPFC(n_iter=2, classes=names[::-1]).fit(X, frame)
