"""Rows whose sums are farthest from those of others, about the center of a fit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def mirrored(rows: NDArray[Any], fitted: Any) -> NDArray[np.float64] | None:
    """Return rows that a fit, once it has centred them, bounds to their negatives.

    None if it has no center, or one of zeros: ``-rows`` are such rows. With unit rows
    ``u`` and a center ``c``, the other end of the chord of the unit ball through ``u``
    and ``c``; with a center beyond the ball, and rows of any norm, the reflection ``2 c
    - u``.

    >>> from types import SimpleNamespace
    >>> fitted = SimpleNamespace(center_=np.array([0.0, 0.6]), row_scaling="unit")
    >>> mirrored(np.array([[2.0, 0.0]]), fitted).round(6).tolist()
    [[-0.470588, 0.882353]]
    """
    center = getattr(fitted, "center_", None)
    if center is None or rows.ndim != 2 or not np.any(center):
        return None
    rows = rows.astype(np.float64)
    inside = 1.0 - float(center @ center)
    if fitted.row_scaling != "unit" or inside <= 0.0:
        return np.asarray(2.0 * center - rows)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    apart = rows / np.where(norms > 0.0, norms, 1.0) - center
    along = apart @ center
    squares = np.sum(apart**2, axis=1)
    # |c - t (u - c)| = 1
    steps = (along + np.sqrt(along**2 + squares * inside)) / squares
    return np.asarray(center - steps[:, None] * apart)
