"""Row numbers with the mark of a choice that a charge covers."""

import hashlib
from typing import Any

import numpy as np
from jaxtyping import Int

_MARK = "privfeat: one record moves no other"
SEEN = "privfeat: nor does what fits on them, which asked for them"


def covered_rows(
    rows: Int[np.ndarray, " n"], *, seen: bool = False
) -> Int[np.ndarray, " n"]:
    """Return row numbers with the mark of a choice that a charge covers.

    The mark is a checksum of the numbers in their dtype: it gets to other processes
    with them, and does not fit a part of them. ``seen``: what will fit on them has
    asked for them itself, so that what is around it was seen.
    """
    plain = np.asarray(rows, np.int64)
    marks = dict.fromkeys([_MARK, SEEN] if seen else [_MARK], _checksum(plain))
    return plain.astype(np.dtype(np.int64, metadata=marks))


def are_covered(rows: Any, mark: str = _MARK) -> bool:
    """Return whether `covered_rows` marked exactly these numbers."""
    if not isinstance(rows, np.ndarray) or rows.dtype.metadata is None:
        return False
    return bool(rows.dtype.metadata.get(mark) == _checksum(rows))


def _checksum(rows: Int[np.ndarray, " n"]) -> str:
    return hashlib.sha256(rows.tobytes()).hexdigest()
