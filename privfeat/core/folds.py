"""Whether a fit was handed records that its charge covers: all of them, or a fold.

A charge says what a fit costs one record **of the data set**. That is the cost of its
statement if neighbouring data sets give neighbouring (or equal) training sets: if
nothing but a record itself decides whether it is trained on. Stratified and positional
folds break this, one record moves others. A fit cannot see who chose its records, so
the code that calls it is looked at, and what is not known is not covered.
"""

import hashlib
import sys
from typing import Any

import numpy as np
from jaxtyping import Int

from privfeat._types import Adjacency

# What scikit-learn hands on whole: all rows that it was given, or none.
_WHOLE = (
    "sklearn.base",
    "sklearn.compose",
    "sklearn.ensemble._stacking",
    "sklearn.ensemble._voting",
    "sklearn.model_selection._search",
    "sklearn.model_selection._search_successive_halving",
    "sklearn.multiclass",
    "sklearn.multioutput",
    "sklearn.pipeline",
    "sklearn.utils",
)
_VALIDATION = "sklearn.model_selection._validation"
# Of the module above, what fits on the rows that the local ``train`` lists.
_ON_FOLDS = ("_fit_and_score", "_fit_and_predict")
_AROUND_FOLDS = (
    "cross_validate",
    "cross_val_score",
    "cross_val_predict",
    "learning_curve",
    "validation_curve",
)
_MARK = "privfeat: one record moves no other"


def covered_rows(rows: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Return row numbers with the mark of a choice that composition covers.

    The mark holds a checksum of the numbers and stands in their dtype, so it gets to
    other processes with them, and is void for a part of them.
    """
    plain = np.asarray(rows, np.int64)
    marked = np.dtype(np.int64, metadata={_MARK: _checksum(plain)})
    return plain.astype(marked)


def are_covered(rows: Any) -> bool:
    """Return whether `covered_rows` marked exactly these numbers."""
    if not isinstance(rows, np.ndarray) or rows.dtype.metadata is None:
        return False
    return bool(rows.dtype.metadata.get(_MARK) == _checksum(rows))


def uncovered_choice(adjacency: Adjacency) -> str | None:
    """Return the function of scikit-learn that chose records as no charge covers.

    None if all functions of scikit-learn around this call hand on all records, or those
    of `covered_rows`. A choice in other code cannot be seen.
    """
    frame = sys._getframe(1)
    while frame is not None:
        module, function = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if module.split(".")[0] == "sklearn" and (
            not _hands_on(module, function, frame)
            # a record replaced by one of another class makes training sets of other
            # sizes, which a fit under replace-one takes for public
            or (adjacency == "replace_one" and function == "_fit_ovo_binary")
        ):
            return f"{module}.{function}"
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _hands_on(module: str, function: str, frame: Any) -> bool:
    if module == _VALIDATION:
        if function in _ON_FOLDS:
            return are_covered(frame.f_locals.get("train"))
        return function in _AROUND_FOLDS
    return any(module == name or module.startswith(f"{name}.") for name in _WHOLE)


def _checksum(rows: Int[np.ndarray, " n"]) -> str:
    return hashlib.sha256(rows.tobytes()).hexdigest()
