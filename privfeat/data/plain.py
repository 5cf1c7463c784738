"""Values of tables in one form, whatever types the columns have that hold them.

One gap, or one half, makes floats of the whole numbers of a column.
"""

from numbers import Real
from typing import Any

import numpy as np

from privfeat._messages import without_data

# pandas' marks of a missing value, which compare and convert like nothing else
ABSENT = ("NAType", "NaTType")


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
    plain.ravel()[:] = without_data(lambda: [plain_value(v) for v in array.flat])
    numbers = all(isinstance(value, float) for value in plain.flat)
    return plain.astype(np.float64) if numbers else plain


def plain_row(table: Any, place: int) -> Any:
    """Return one row of a table of pandas, whose types follow from its own values."""
    row = table.iloc[place : place + 1]
    values = without_data(row.to_numpy, object).ravel()
    plain = without_data(lambda: [plain_value(value) for value in values])
    if not hasattr(table, "columns"):
        return type(table)(plain)
    return type(table)([plain], columns=table.columns)
