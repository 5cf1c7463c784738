"""What a fit accepts, refuses and says of its data."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from privfeat import (
    DPFC,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPNearestMean,
    DPNewton,
)
from privfeat.audit.recorder import recording
from privfeat.estimation.inputs import array_of_records
from privfeat.estimation.plain import plain_records
from tests.linear.conftest import FITTED

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


def assert_refused(clf, X, y, match):
    with pytest.raises(ValueError, match=match):
        clf.fit(X, y)
    assert not FITTED & set(vars(clf))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_fit_refuses_data_that_is_not_finite(estimator, three_classes, bad):
    X, y = three_classes
    X[3, 2] = bad
    assert_refused(estimator(), X, y, "NaN|infinity")


@pytest.mark.parametrize(
    ("shape", "match"),
    [
        ((0, 4), "0 sample"),
        ((31, 0), "0 feature"),
        ((31,), "2D"),
        ((31, 2, 2), "dim"),
    ],
)
def test_fit_refuses_data_of_a_wrong_shape(estimator, three_classes, shape, match):
    _, y = three_classes
    assert_refused(estimator(), np.ones(shape), y[: shape[0]], match)


def test_fit_refuses_labels_of_another_length(estimator, three_classes):
    X, y = three_classes
    assert_refused(estimator(), X, y[:-1], "inconsistent")


def test_fit_refuses_one_class(estimator, three_classes):
    X, y = three_classes
    assert_refused(estimator(), X, np.zeros_like(y), "classes must hold at least 2")


def test_fit_refuses_a_label_outside_the_classes(estimator, three_classes):
    clf = estimator(classes=[0, 1])
    assert_refused(clf, *three_classes, "y must hold labels of classes only")


@pytest.mark.parametrize("classes", [["a", "b"], [0.5, 1.5, 2.5], [10, 11]])
def test_fit_refuses_classes_of_another_kind(estimator, three_classes, classes):
    assert_refused(estimator(classes=classes), *three_classes, "classes")


def test_fit_does_not_show_a_label_that_is_no_class(estimator, three_classes):
    X, y = three_classes
    y = y.copy()
    y[4] = 987654
    with pytest.raises(ValueError, match="another label") as caught:
        estimator(classes=range(3)).fit(X, y)
    assert "987654" not in str(caught.value)


def test_fit_keeps_a_class_without_records(estimator, three_classes):
    X, y = three_classes
    clf = estimator(epsilon=1.0, classes=[0, 1, 2, 7]).fit(X, y)
    assert clf.classes_.tolist() == [0, 1, 2, 7]
    assert clf.coef_.shape == (4, 4)
    assert np.all(np.isfinite(clf.coef_))


def test_fit_with_one_class_present_of_two(estimator, three_classes):
    X, y = three_classes
    clf = estimator(epsilon=1.0, classes=[0, 1]).fit(X, np.zeros_like(y))
    assert clf.coef_.shape == (1, 4)


@pytest.mark.parametrize(
    "names", [["x", "y", "z"], [10, 20, 30], [-1.0, 0.0, 1.0], ["b", "a", "c"]]
)
def test_fit_accepts_any_labels(estimator, three_classes, names):
    X, y = three_classes
    clf = estimator(epsilon=math.inf, classes=names).fit(X, np.array(names)[y])
    assert clf.classes_.tolist() == sorted(names)
    assert clf.score(X, np.array(names)[y]) > 0.6


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_fit_accepts_any_number_type(estimator, three_classes, dtype):
    X, y = three_classes
    X = np.round(4.0 * X).astype(dtype)
    clf = estimator(epsilon=1.0, random_state=0).fit(X, y)
    other = estimator(epsilon=1.0, random_state=0).fit(X.astype(np.float64), y)
    np.testing.assert_array_equal(clf.coef_, other.coef_)


@pytest.mark.parametrize("order", ["C", "F"])
def test_fit_does_not_depend_on_the_memory_layout(estimator, three_classes, order):
    X, y = three_classes
    found = estimator(random_state=0).fit(np.asarray(X, order=order), y)
    expected = estimator(random_state=0).fit(X, y)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_fit_does_not_depend_on_the_order_of_records(estimator, three_classes):
    """Exact sums: bit for bit, with the same noise."""
    X, y = three_classes
    places = np.random.default_rng(0).permutation(len(y))
    found = estimator(random_state=0).fit(X[places], y[places])
    expected = estimator(random_state=0).fit(X, y)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_fit_refuses_repeated_classes(estimator, three_classes):
    """``classes=y`` would be saved with the model: the labels themselves."""
    X, y = three_classes
    with pytest.raises(ValueError, match="each label once"):
        estimator(classes=y).fit(X, y)


def test_fit_does_not_tell_of_the_number_of_labels_in_y(estimator):
    """scikit-learn warns when more than half of the records are classes."""
    X, y = np.eye(20), np.arange(20)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator(classes=range(40)).fit(X, y)
    assert not caught


@pytest.mark.parametrize(
    "make_bad",
    [
        lambda X, y: (X[:, 0] + 1234.5, y),
        lambda X, y: (X + 1234.5j, y),
        lambda X, y: (np.where(X > 0, "1234", "SSN"), y),
        lambda X, y: (X, y[:-1]),
        lambda X, y: (X, np.where(y > 0, "1234", "short")),
    ],
    ids=["one-dimensional", "complex", "text", "lengths", "label-kinds"],
)
def test_fit_messages_hold_no_data(estimator, make_bad, three_classes):
    X, y = make_bad(*three_classes)
    with pytest.raises(ValueError, match=r"\.") as caught:
        estimator(classes=range(3)).fit(X, y)
    for secret in ("1234", "SSN", str(len(three_classes[1])), "<U"):
        assert secret not in str(caught.value)


@pytest.mark.parametrize("dtype", [object, str])
def test_fit_accepts_strings_in_any_array(estimator, three_classes, dtype):
    X, y = three_classes
    names = np.array(["a", "bb", "ccc"], dtype)[y]
    clf = estimator(classes=["a", "bb", "ccc"]).fit(X, names)
    assert set(clf.predict(X)) <= {"a", "bb", "ccc"}


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
@pytest.mark.parametrize(
    "cls", [DPFC, DPLeastSquares, DPLeastSquaresRegressor, DPNewton]
)
def test_without_a_ridge_few_records_are_enough(cls, epsilon):
    """Noise, or their number, makes matrices singular: too late to refuse the fit."""
    rng = np.random.default_rng(0)
    for seed in range(3):
        model = cls(ridge=0.0, epsilon=epsilon, random_state=seed)
        model.fit(rng.normal(size=(2, 5)), [0, 1])
        assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize("kind", [DPLeastSquares, DPNearestMean, DPFC])
def test_no_record_decides_how_the_columns_of_others_are_rounded(kind):
    """A half among whole numbers makes a table of float32 one of float64."""
    small = np.random.default_rng(0).uniform(-1, 1, 60).astype(np.float32)
    table = pd.DataFrame({"a": small, "visits": np.arange(60, dtype=np.int8) % 3})
    wide = table.astype(np.float64)
    assert np.asarray(table).dtype == np.float32
    found = []
    for rows in (table, wide):
        clf = kind(classes=[0, 1], center=False, row_scaling="clip", epsilon=1.0)
        with recording() as recorder:
            if found:
                recorder.start(found[0])
            clf.fit(rows, np.arange(60) % 2)
        found.append(recorder.calls)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one.exact, other.exact)


def test_predictions_of_a_table_do_not_depend_on_its_types():
    table = pd.DataFrame({"a": np.ones(3, np.float32), "b": np.ones(3, np.int8)})
    assert array_of_records(table).dtype == np.float64
    assert array_of_records(np.asarray(table)).dtype == np.float32


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("other", ["bool", "i1", "u2", "i8", "f2", "f8", "O"])
@pytest.mark.parametrize("first", [False, True])
def test_a_list_of_bytes_and_others_is_refused(other, ndim, first):
    """One image of 16 bits made floats of the bytes of all, or a byte image of bits."""
    odd = np.ones((2,) * ndim, other)
    for common in (np.uint8, odd.dtype):
        records = [np.ones((2,) * ndim, common)] * 3
        beside = odd if common == np.uint8 else odd.astype(np.uint8)
        records.insert(0 if first else 3, beside)
        with pytest.raises(TypeError, match="must hold records of one type"):
            array_of_records(records)
        with pytest.raises(TypeError, match="must hold records of one type"):
            plain_records(records)
