"""Values of tables in one form, whatever types the columns have that hold them.

One gap, or one half, makes floats of the whole numbers of a column.
"""

from numbers import Real
from typing import Any

import numpy as np

from privfeat._messages import without_data
from privfeat.core.callers.forms import ABSENT, values_vary


def check_values(rows: Any, first: Any = None) -> None:
    """Raise TypeError if one record may decide what the values of others are.

    ``first`` is the step that gets them, if it is known (`values_vary`).
    """
    if without_data(values_vary, rows, first):
        raise TypeError(
            "X must hold numbers, and texts that do not read as numbers, got other "
            "values: one word makes texts of all numbers, truth values or dates of "
            "its column. Correct the table and pass its numbers as floats "
            "(X.astype(float)). PublicColumns takes all of them as they are."
        )


def plain_value(value: Any) -> Any:
    """Return a number as float64, a gap as NaN, and a text as it is."""
    if value is None or type(value).__name__ in ABSENT:
        return np.nan
    return float(value) if isinstance(value, Real | np.bool_) else value


def with_floats(array: Any) -> Any:
    """Return numbers as float64; beside texts, as objects that are floats."""
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
