"""What a row becomes before it is bounded: scaled and centred, each by itself.

Predictions need no more than this, and no JAX.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._types import RowScaling


def scaled_rows(
    features: NDArray[np.floating], center: NDArray[np.float64], row_scaling: RowScaling
) -> NDArray[np.float64]:
    """Return rows as a model sees them, for predictions: not clipped, no constant."""
    rows = shifted_rows(features, center, row_scaling)
    return np.asarray(unit_rows(rows) if row_scaling == "unit" else rows)


def shifted_rows(
    features: Any, center: Any, row_scaling: RowScaling, xp: Any = np
) -> Any:
    """Return each row, scaled to unit norm for ``"unit"``, minus ``center``.

    In float64, by the array library ``xp``.
    """
    rows = features.astype(xp.float64)
    return (unit_rows(rows, xp) if row_scaling == "unit" else rows) - center[None, :]


def unit_rows(rows: Any, xp: Any = np) -> Any:
    """Return rows divided by their norms; zero rows stay zero."""
    largest = xp.max(xp.abs(rows), axis=1, keepdims=True, initial=0.0)
    rows = rows / xp.where(largest > 0.0, largest, 1.0)  # no overflow of squares
    norms = xp.linalg.norm(rows, axis=1, keepdims=True)
    return rows / xp.where(norms > 0.0, norms, 1.0)
