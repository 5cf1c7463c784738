"""Whether one record may decide in which form a step gets all others.

A table has one type for each column, and one word, gap or half in it is enough for
another. So others' steps get numbers alone, or texts alone, and never both.
"""

import re
from typing import Any

import numpy as np

from privfeat.core.callers.stateless import DECLARED, is_exactly

# pandas' marks of a missing value, which compare and convert like nothing else
ABSENT = ("NAType", "NaTType")
# Its file has one type of floats, which was chosen before its first row.
_STORED = {"privfeat": {"LazyFeatures"}}
# What readers of tables take for a gap: all of them among numbers, some also in texts.
_GAP = re.compile(
    r"#?n/?a|#n/a n/a|<na>|null|none|[-+]?(nan(\(.*\))?|1\.#(ind|qnan))", re.IGNORECASE
)


def form_varies(rows: Any, first: Any = None, *, targets: bool = False) -> bool:
    """Return whether one record may decide in which form ``first`` gets all others.

    ``rows`` are records, or their ``targets``, which are numbers alone.

    One half makes a column of whole numbers one of floats, and one gap makes floats of
    truth values; beside whole numbers, float32 becomes float64 or stays. So numbers
    must be float64, and a zero has no sign: "-0" is a whole number in some columns. One
    word makes texts of all numbers, truth values or dates of a column, and of a list
    with them NumPy makes texts. So texts stand alone, one a record (`are_texts`). In
    sparse rows without an order, steps add up entries of one place in an order that
    follows from all rows. `PublicColumns` sees to its values by itself, and rows of a
    feature file are floats of the type that it was made for.

    *Proof.* Let neighbours that are both taken share a record. If it is one text in
    one of them, all records are texts there; in the other it is no row of float64, so a
    text, too. Else it is a row of float64 in both. (Where one is refused, the refusal
    tells them apart: to their owner, before anything is charged.)
    """
    if is_exactly(first, DECLARED) or is_exactly(rows, _STORED):
        return False
    if not targets and are_texts(rows):  # all categories follow from all records
        return hasattr(getattr(rows, "dtype", None), "categories")
    if not getattr(rows, "has_canonical_format", True):  # of sparse ones
        return True
    rows_of_numbers = targets or len(getattr(rows, "shape", ())) > 1
    if not rows_of_numbers or set(_types(rows)) != {np.dtype(np.float64)}:
        return True
    values = np.asarray(rows.tocoo().data if hasattr(rows, "tocoo") else rows)
    return bool(np.any(np.signbit(values) & (values == 0.0)))


def are_texts(rows: Any) -> bool:
    """Return whether records are texts: a list, an array or one column of them.

    None of them bytes: in some readers one text that is no UTF-8 makes bytes of all.
    And none "NA" or the like: some readers take it for a gap, but for a text as soon as
    one record of its column is a word. A gap in texts is the empty string.
    """
    listed = isinstance(rows, list | tuple)
    column = len(getattr(rows, "shape", ())) == 1
    return (listed or column) and all(map(_is_text, rows))


def reads_as_gap(text: str) -> bool:
    """Return whether readers of tables may take a text for a gap, among numbers."""
    return _GAP.fullmatch(text) is not None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not reads_as_gap(value)


def _types(rows: Any) -> list[Any]:
    """Return the types of the columns of a table, or of an array; of lists none."""
    if not hasattr(rows, "dtypes"):
        return [rows.dtype] if hasattr(rows, "dtype") else []
    types = [rows.dtypes] if rows.ndim == 1 else rows.dtypes
    # of sparse columns; intervals, too, have a subtype
    return [kind.subtype if hasattr(kind, "fill_value") else kind for kind in types]
