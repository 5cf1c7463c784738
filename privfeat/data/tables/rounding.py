"""Long whole numbers of tables: one record may have rounded those of all others."""

from numbers import Integral
from typing import Any

import numpy as np

EXACT = 2**53  # from there on, floats stand for several whole numbers


def may_be_rounded(values: Any) -> bool:
    """Return whether a column of pandas holds whole numbers of ``EXACT`` and more.

    ``read_csv`` takes a whole column for floats if one value is written as 5.0 or 1e5,
    and makes whole numbers of them again where ``dtype`` asks for these. Nothing in the
    column tells, nor in the categories or the objects that are made of it. Arrays of
    NumPy, and tables of others, are taken as they are.
    """
    # no attribute of an object of others is asked for: it may raise what it holds
    if type(values).__module__.split(".")[0] != "pandas":
        return False
    dtype = getattr(values, "dtype", None)
    if dtype is None:  # a table
        return False
    if hasattr(dtype, "categories"):
        return may_be_rounded(dtype.categories)
    return holds_long(values)


def holds_long(values: Any) -> bool:
    """Return whether an array, or a column of pandas, holds such whole numbers."""
    if values.dtype.kind in ("i", "u"):
        # missing ones count for neither
        return bool((values >= EXACT).any() or (values <= -EXACT).any())
    return values.dtype.kind == "O" and any(map(_is_long, np.asarray(values, object)))


def as_read(values: Any) -> Any:
    """Return objects in which long whole numbers are floats, as they may have been."""
    objects = [float(v) if _is_long(v) else v for v in np.asarray(values, object)]
    found = np.empty(len(objects), object)
    found[:] = objects
    return found


def _is_long(value: Any) -> bool:
    return isinstance(value, Integral) and abs(int(value)) >= EXACT
