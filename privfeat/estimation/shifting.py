"""What a row becomes before it is bounded: scaled and centred, each by itself.

For predictions, which need no more than this, and no JAX.
"""

import numpy as np
from numpy.typing import NDArray

from privfeat._types import RowScaling


def scaled_rows(
    features: NDArray[np.floating], center: NDArray[np.float64], row_scaling: RowScaling
) -> NDArray[np.float64]:
    """Return rows as a model sees them, for predictions: not clipped, no constant."""
    rows = features.astype(np.float64)
    if row_scaling == "clip":
        return rows - center
    return unit_rows(unit_rows(rows) - center)


def unit_rows(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows divided by their norms; zero rows stay zero."""
    largest = np.max(np.abs(rows), axis=1, keepdims=True, initial=0.0)
    rows = rows / np.where(largest > 0.0, largest, 1.0)  # no overflow of squares
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0.0, norms, 1.0))
