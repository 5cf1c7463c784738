"""From a user's ``y`` to what a fit makes of it: labels to class indices, say."""

from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from privfeat._messages import without_data
from privfeat._warnings import warn
from privfeat.core.callers.stack import callers


@dataclass(frozen=True)
class Labels:
    """The classes, public, and which of them each record carries, sensitive."""

    # (n_classes,): sorted, or in the order of the columns of an indicator matrix
    classes: NDArray[Any]
    # (n_samples, max_labels): indices into ``classes``, different ones in a row, filled
    # up with -1
    codes: NDArray[np.int32]
    multilabel: bool  # whether a record may carry any number of labels, none included


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What a fit makes of ``y``."""

    # (n_samples, ...), sensitive: of classes their numbers, in any order; of a
    # regression what is predicted
    targets: NDArray[np.integer] | NDArray[np.floating]
    n_outputs: int  # scores that a model has of one record
    fitted: dict[str, Any]  # public attributes that the fitted estimator gets
    public: tuple[str, ...]  # what the guarantee assumes known about ``y``
    classes_read: bool = False  # whether the classes were read from ``y``


def read_labels(y: Any, classes: ArrayLike | None, max_labels: int | None) -> Labels:
    """Return the labels of a validated ``y``: an indicator matrix, or one a record."""
    if is_indicator(y, classes):
        return encode_indicator(y, classes, max_labels)
    column = y if y.ndim == 1 else without_data(column_or_1d, y, warn=True)
    return encode_labels(column, classes)


def is_indicator(y: Any, classes: ArrayLike | None) -> bool:
    """Return whether ``y`` is read as an indicator matrix, by its public shape alone.

    One column is a list of labels, as for scikit-learn, unless it is sparse or there
    is one class.
    """
    if np.ndim(y) != 2 and not issparse(y):
        return False
    one_class = classes is not None and np.shape(classes) == (1,)
    return y.shape[1] != 1 or issparse(y) or one_class


def encode_indicator(
    y: Any, classes: ArrayLike | None, max_labels: int | None
) -> Labels:
    """Return the labels of an indicator matrix, the first ``max_labels`` of a record.

    ValueError if an entry is neither 0 nor 1, or ``classes`` does not name the columns.
    """
    n_classes = y.shape[1]
    known = _check_classes(np.arange(n_classes) if classes is None else classes)
    if len(known) != n_classes:
        raise ValueError(
            f"classes must name the {n_classes} columns of y, got {len(known)} names."
        )
    if y.dtype.kind in "biuf":
        matrix = csr_array(y, copy=True)
        # Floats would be added up in an order that depends on other records.
        plain = bool(np.all((matrix.data == 0) | (matrix.data == 1)))
        matrix.sum_duplicates()  # sorts the columns of a record as well
        matrix.eliminate_zeros()
    if y.dtype.kind not in "biuf" or not plain or not np.all(matrix.data == 1):
        raise ValueError("y must hold 0 and 1 only, got another entry of the matrix.")
    counts = np.diff(matrix.indptr)
    record = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(matrix.nnz) - matrix.indptr[record]
    width = n_classes if max_labels is None else min(int(max_labels), n_classes)
    kept = place < width
    codes = np.full((len(counts), width), -1, np.int32)
    codes[record[kept], place[kept]] = matrix.indices[kept]
    return Labels(known, codes, multilabel=True)


def encode_labels(y: NDArray[Any], classes: ArrayLike | None) -> Labels:
    """Return one label a record, as indices into the sorted classes.

    ValueError if there are fewer than two classes, or a label is none of ``classes``.
    """
    _check_one_vs_rest(classes)
    if classes is None:
        without_data(check_classification_targets, y)
    y = _plain(y)
    read = without_data(np.unique, y) if classes is None else classes
    known = np.sort(_check_classes(read))
    if len(known) < 2:
        raise ValueError(
            f"classes must hold at least 2 classes, got {len(known)} class."
        )
    if known.dtype.kind != y.dtype.kind and "U" in (known.dtype.kind, y.dtype.kind):
        raise ValueError(
            "classes and y must both be numbers or both be strings, got one of each."
            " BaggingClassifier, StackingClassifier and their like number the classes: "
            "pass classes=range(k) inside of them."
        )
    kinds = {known.dtype.kind, y.dtype.kind}
    rounded = len(kinds) == 2 and kinds < {"i", "u", "f"}
    if rounded and np.max(np.abs(known.astype(np.float64))) >= 2.0**53:
        raise ValueError(
            "classes must be below 2**53 where y holds numbers of another type: they "
            "are compared as floats, which are rounded there. Pass both as int64."
        )
    codes, found = without_data(places_of, y, known)
    if not found:
        raise ValueError(
            "y must hold labels of classes only, got another label. Pass every "
            "possible label in classes."
        )
    return Labels(known, codes[:, None].astype(np.int32), multilabel=False)


def _check_one_vs_rest(classes: ArrayLike | None) -> None:
    """Warn inside ``OneVsRestClassifier`` and the like, and refuse several classes.

    They read the labels from ``y``, and give each fit 0 and 1. A fit with other classes
    would pass, since some may have no record, and fail at the first prediction.
    """
    if classes is None or not _inside_one_vs_rest():
        return
    n_classes = np.size(np.asarray(classes))
    if n_classes != 2:
        raise ValueError(
            "classes must be None or two inside OneVsRestClassifier and its like, "
            f"which ask each fit for 0 and 1, got {n_classes}. Fit this "
            "estimator itself: it takes all classes, for the budget of one fit."
        )
    warn(
        "OneVsRestClassifier and its like read the set of labels from y, whatever "
        "classes says, and show a rare one. Fit this estimator itself, with every "
        "possible label in classes."
    )


def _inside_one_vs_rest() -> bool:
    homes = ("privfeat.", "sklearn.", "joblib.")
    modules = [caller.module for caller in callers()]
    return "sklearn.multiclass" in takewhile(
        lambda module: module.startswith(homes), modules
    )


def places_of(y: NDArray[Any], known: NDArray[Any]) -> tuple[NDArray[np.intp], bool]:
    """Return indices into sorted classes, and whether every label is one of them.

    Objects compare themselves: to be called by `without_data`.
    """
    codes = np.minimum(np.searchsorted(known, y), len(known) - 1)
    return codes, bool(np.all(known[codes] == y))


def check_kinds(name: str, labels: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise ValueError where labels are strings and classes numbers, or the reverse."""
    kinds = [without_data(_plain, array).dtype.kind for array in (labels, classes)]
    words = ["strings" if kind == "U" else "numbers" for kind in kinds]
    if words[0] != words[1] and set(kinds) <= set("biufU"):
        raise ValueError(
            f"{name} must hold {words[1]}, as the classes are, got {words[0]}. A model "
            "that `privfeat fit` made has the classes 0, 1, ...: their names are "
            "privfeat.persistence.load_class_names(DIR), in this order."
        )


def _check_classes(classes: ArrayLike) -> NDArray[Any]:
    """Return the classes as an array, or raise ValueError."""
    known = _plain(np.asarray(classes))
    if known.ndim != 1 or (known.dtype.kind == "f" and not np.all(np.isfinite(known))):
        raise ValueError(
            "classes must be one-dimensional and hold no NaN or infinity, got shape "
            f"{known.shape}. Pass a list or a range."
        )
    if len(np.unique(known)) < len(known):
        raise ValueError("classes must hold each label once, got a repeated one.")
    return known


def _plain(labels: NDArray[Any]) -> NDArray[Any]:
    """Return strings, or whole numbers, as an array of these, whatever they were in."""
    if labels.dtype.kind != "O":
        return labels
    if all(isinstance(label, str) for label in labels.flat):
        return labels.astype(str)
    if all(isinstance(n, Integral) and not isinstance(n, bool) for n in labels.flat):
        with suppress(OverflowError):  # beyond int64
            return labels.astype(np.int64)
    return labels
