"""Values of tables in one form, whatever types the columns have that hold them.

One gap, or one half, makes floats of the whole numbers of a column, and one time with
nanoseconds gives all dates that unit.
"""

from numbers import Real
from typing import Any

import numpy as np

from privfeat._messages import without_data
from privfeat.core.callers.forms import texts_vary

# pandas' marks of a missing value, which compare and convert like nothing else
ABSENT = ("NAType", "NaTType")


def check_texts(rows: Any, first: Any = None) -> None:
    """Raise TypeError if texts in a table or an array may be numbers beside others.

    ``first`` is the step that gets them, if it is known (`texts_vary`).
    """
    if without_data(texts_vary, rows, first):
        raise TypeError(
            "X must hold no texts that read as numbers, or as True or False, and no "
            "numbers of pandas' or Arrow's own types, got one: one word makes texts "
            "of all other values of such a column. Correct the table and pass its "
            "numbers as floats (X.astype(float)), or, for a step or a model that was "
            "fitted to texts, pass dtype='string' to read_csv (X.astype('string') "
            "comes too late). PublicColumns takes either."
        )


def plain_value(value: Any) -> Any:
    """Return a number as float64, a gap as NaN, and a text as it is.

    A date, or a duration, counts microseconds; an interval has ends of float64.
    """
    kind = type(value).__name__
    if value is None or kind in ABSENT:
        return np.nan
    if hasattr(value, "as_unit"):  # of pandas
        return value.as_unit("us")
    if isinstance(value, np.datetime64 | np.timedelta64):
        return value.astype(f"{kind}[us]")
    if kind == "Interval":
        ends = plain_value(value.left), plain_value(value.right)
        return type(value)(*ends, value.closed)
    return float(value) if isinstance(value, Real | np.bool_) else value


def with_floats(array: Any) -> Any:
    """Return numbers as float64; beside texts, as objects that are floats.

    Dates and durations count microseconds.
    """
    if array.dtype.kind in "mM":
        return array.astype(f"{array.dtype.name.partition('[')[0]}[us]")
    if array.dtype.kind in "biuf":
        return without_data(array.astype, np.float64)
    if array.dtype.kind not in "OUS":
        return array
    plain = np.empty(array.shape, object)

    def fill() -> None:
        plain.ravel()[:] = [plain_value(value) for value in array.flat]

    without_data(fill)  # an object of the user may raise
    numbers = all(isinstance(value, float) for value in plain.flat)
    return plain.astype(np.float64) if numbers else plain


def plain_row(table: Any, place: int) -> Any:
    """Return one row of a table of pandas, whose types follow from its own values."""
    row = table.iloc[place : place + 1]
    values = without_data(row.to_numpy, object).ravel()
    plain = without_data(lambda: [plain_value(value) for value in values])
    if not hasattr(table, "columns"):
        return without_data(type(table), plain)
    return without_data(type(table), [plain], columns=table.columns)
