"""Long whole numbers of tables: one record may have rounded those of all others."""

from typing import Any

EXACT = 2**53  # from there on, floats stand for several whole numbers


def may_be_rounded(values: Any) -> bool:
    """Return whether a column of pandas holds whole numbers of ``EXACT`` and more.

    ``read_csv`` takes a whole column for floats if one value is written as 5.0 or 1e5,
    and makes whole numbers of them again where ``dtype`` asks for these. Nothing in the
    column tells. Arrays of NumPy, and tables of others, are taken as they are.
    """
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "") not in ("i", "u") or not _is_of_pandas(values):
        return False
    # missing ones count for neither
    return bool((values >= EXACT).any() or (values <= -EXACT).any())


def _is_of_pandas(values: Any) -> bool:
    return type(values).__module__.split(".")[0] == "pandas"
