"""Records as steps and models of others see them: numbers as float64, or texts.

One gap, or one half, makes floats of the whole numbers of a column, and one word makes
texts of them. So no type of a table, an array or a list is kept.
"""

from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._messages import array_of, without_data
from privfeat.core.callers.forms import (
    ABSENT,
    are_texts,
    reads_as_gap,
)
from privfeat.estimation.inputs import array_of_records

_NUMBERS_ALONE = (
    "X must hold rows of numbers, or one text for each record, for a step or a model "
    "that is not of privfeat, got other values: one word makes texts of all numbers, "
    "truth values or dates of its column, and so changes what is made of all records. "
    "PublicColumns makes numbers of the columns of a table. Pass a column of texts by "
    "itself, with '' for gaps and for what readers may take for one (NA, null, nan)."
)


def plain_records(X: Any) -> Any:
    """Return records in the one form that they have beside any others.

    Numbers, also those in objects, as float64, gaps among them as NaN: an array of
    shape (n_samples, n_features), a table with the same columns, or mappings of names
    to them. Images of bytes stay bytes. Texts, one for each record, are an array of
    objects.

    TypeError for other values, and for numbers that do not stand in rows.

    *Proof.* Let neighbours that are both taken share a record. If it is one text in one
    of them, all records there are texts, none of which some reader takes for a gap, and
    in the other it is no row of numbers, so the same text. Else it is numbers in both,
    and each becomes float64 by itself. (But that images are bytes is a choice of who
    stored them: ``docs/guides/unnoticed.md``.)
    """
    if without_data(are_texts, X):
        texts = np.empty(len(X), object)
        texts[:] = [str.__str__(text) for text in X]
        return texts
    listed = isinstance(X, list | tuple) and len(X) > 0
    if listed and all(isinstance(record, Mapping) for record in X):
        return [{_name(key): _float(one[key]) for key in one} for one in X]
    if hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2:
        columns = [_floats(X.iloc[:, place]) for place in range(X.shape[1])]
        rows = np.stack(columns, axis=1) if columns else np.empty((len(X), 0))
        return type(X)(rows, columns=X.columns)
    rows = array_of_records(X)
    images = rows.dtype == np.uint8 and rows.ndim > 2
    return rows if images else _floats(rows)


def frame_of(X: Any) -> Any:
    """Return a table of pandas for one of Arrow or Polars; others as they are."""

    def converted() -> Any:
        has_names = hasattr(X, "columns") or hasattr(X, "column_names")
        if has_names and not hasattr(X, "iloc") and hasattr(X, "to_pandas"):
            return X.to_pandas()
        return X

    return without_data(converted)


def _floats(values: Any) -> NDArray[np.float64]:
    """Return numbers as float64; or raise TypeError."""
    kind = values.dtype.kind if isinstance(values.dtype, np.dtype) else "O"
    found = with_floats(array_of(values)) if kind in "biuf" else None
    if kind == "O":  # of dates NumPy makes whole numbers
        found = with_floats(without_data(np.array, values, object))
    one_axis = isinstance(values, np.ndarray) and values.ndim < 2
    if found is None or found.dtype != np.float64 or one_axis:
        raise TypeError(_NUMBERS_ALONE)
    return found


def _name(key: Any) -> Any:
    if isinstance(key, str) and reads_as_gap(key):
        raise TypeError(_NUMBERS_ALONE)
    return key


def _float(value: Any) -> float:
    plain = without_data(_plain, value)
    if not isinstance(plain, float):
        raise TypeError(_NUMBERS_ALONE)
    return plain


def with_floats(array: NDArray[Any]) -> NDArray[Any]:
    """Return what a step made of one record, or more: numbers as float64.

    Beside texts, as objects that are floats. A zero has no sign, as "-0" has none
    where a reader finds whole numbers alone.
    """
    if array.dtype.kind in "biuf":
        return without_data(array.astype, np.float64) + 0.0
    if array.dtype.kind not in "OUS":
        return array
    plain = np.empty(array.shape, object)

    def fill() -> None:
        plain.ravel()[:] = [_plain(value) for value in array.flat]

    without_data(fill)  # an object of the user may raise
    numbers = all(isinstance(value, float) for value in plain.flat)
    return plain.astype(np.float64) if numbers else plain


def _plain(value: Any) -> Any:
    """Return a number as a float, a gap as NaN, and another value as it is."""
    if value is None or type(value).__name__ in ABSENT:
        return np.nan
    number = isinstance(value, Number | np.bool_)
    odd = isinstance(value, complex | np.timedelta64)
    return float(value) + 0.0 if number and not odd else value
