"""The arithmetic of one chunk of sparse rows: products on the host, of SciPy.

A product of a sparse matrix multiplies the stored entries and adds the results one
after the other, fused or not, in some order. All factors and partial sums are whole and
within the limits of ``statistics``, so it is exact, and that of all entries.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float64

from privfeat.core.bounds import losses
from privfeat.core.sums.arithmetic.host import residuals_of, scaled
from privfeat.core.sums.records import SparseChunk


def class_sums_of(chunk: SparseChunk, n_outputs: int) -> Float64[np.ndarray, "m c"]:
    """Return the sum of the rows of each label."""
    indicators = losses.label_indicators(chunk.labels, n_outputs)
    return _transposed_product(chunk, indicators.astype(np.float64))


def gradient_of(
    chunk: SparseChunk,
    kept: Bool[np.ndarray, " b"] | None = None,
    *,
    whole: Float64[np.ndarray, "m c"],
    unit: float,
    **bounds: Any,
) -> Float64[np.ndarray, "m c"]:
    """Return the gradient sum of a chunk, as ``host.gradient_of``."""
    residual = residuals_of(
        # an output after the other in memory, as ``host`` has them
        scaled(np.asfortranarray(chunk.matrix @ whole.T), unit),
        chunk.labels,
        chunk.row_norms,
        kept,
        **bounds,
    )
    return _transposed_product(chunk, residual)


def _transposed_product(
    chunk: SparseChunk, narrow: Float64[np.ndarray, "b m"]
) -> Float64[np.ndarray, "m c"]:
    """Return ``narrow^T rows``."""
    return np.asarray((chunk.matrix.T @ narrow).T)
