"""What a row becomes before it is bounded: scaled and centred, each by itself.

For predictions, which need no more than this, and no JAX.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from privfeat._messages import SPARSE
from privfeat._types import RowScaling


def scaled_rows(
    features: Any, center: NDArray[np.float64], row_scaling: RowScaling
) -> Any:
    """Return rows as a model sees them, for predictions: not clipped, no constant.

    Sparse rows stay sparse; TypeError if they would be centred.
    """
    if issparse(features):
        if np.any(center):
            raise TypeError(SPARSE)
        return features if row_scaling == "clip" else _sparse_unit_rows(features)
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


def _sparse_unit_rows(features: csr_array) -> csr_array:
    rows, counts = features.copy(), np.diff(features.indptr)
    row_of = np.repeat(np.arange(len(counts)), counts)
    largest = np.zeros(len(counts))
    np.maximum.at(largest, row_of, np.abs(rows.data))
    rows.data /= np.where(largest > 0.0, largest, 1.0)[row_of]
    norms = np.sqrt(np.bincount(row_of, rows.data**2, len(counts)))
    rows.data /= np.where(norms > 0.0, norms, 1.0)[row_of]
    return rows
