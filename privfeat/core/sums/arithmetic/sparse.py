"""The arithmetic of one chunk of sparse rows: products on the host, of SciPy.

A product of a sparse matrix multiplies the stored entries and adds the results one
after the other, fused or not, in some order. All factors and partial sums are whole and
within the limits of ``statistics``, so it is exact, and that of all entries.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float64

from privfeat.core.bounds import losses
from privfeat.core.bounds.user_clips import SumClip
from privfeat.core.bounds.users import clip_users
from privfeat.core.sums.arithmetic.residuals import residuals_of, scaled
from privfeat.core.sums.records import SparseChunk


def class_sums_of(
    chunk: SparseChunk, n_outputs: int, clip: SumClip | None = None
) -> Float64[np.ndarray, "m c"]:
    """Return the sum of the rows of each label; in ``2**-20`` of them with ``clip``."""
    narrow = losses.label_indicators(chunk.labels, n_outputs).astype(np.float64)
    if clip is not None:
        narrow = _of_users(narrow, chunk, clip)
    return _transposed_product(chunk, narrow)


def gradient_of(
    chunk: SparseChunk,
    kept: Bool[np.ndarray, " b"] | None = None,
    *,
    whole: Float64[np.ndarray, "m c"],
    grid_step: float,
    clip: SumClip | None = None,
    **bounds: Any,
) -> Float64[np.ndarray, "m c"]:
    """Return the gradient sum of a chunk, as ``host.gradient_of``."""
    residual = residuals_of(
        # an output after the other in memory, as ``host`` has them
        scaled(np.asfortranarray(chunk.matrix @ whole.T), grid_step),
        chunk.labels,
        chunk.row_norms,
        kept,
        **bounds,
    )
    if clip is not None:
        residual = _of_users(residual, chunk, clip)
    return _transposed_product(chunk, residual)


def _of_users(
    narrow: Float64[np.ndarray, "b m"], chunk: SparseChunk, clip: SumClip
) -> Float64[np.ndarray, "b m"]:
    """Return factors of the rows, such that sums of users are clipped."""
    products = (chunk.matrix @ chunk.matrix.T).toarray()
    blocks = products.reshape(-1, clip.block, len(products) // clip.block, clip.block)
    places = np.arange(len(blocks))
    own = blocks[places, :, places, :]
    return np.asarray(clip_users(narrow, own, np.asarray(chunk.users), clip))


def _transposed_product(
    chunk: SparseChunk, narrow: Float64[np.ndarray, "b m"]
) -> Float64[np.ndarray, "m c"]:
    """Return ``narrow^T rows``."""
    return np.asarray((chunk.matrix.T @ narrow).T)
