"""The arithmetic of one chunk of sparse rows: products on the host, of SciPy.

A product of a sparse matrix multiplies the stored entries and adds the results one
after the other, fused or not, in some order. All factors and partial sums are whole and
within the limits of ``statistics``, so it is exact, and that of all entries.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64, Int, Num

from privfeat._types import Loss
from privfeat.core.bounds import losses
from privfeat.core.sums.kernels import clipped_residuals
from privfeat.core.sums.records import SparseChunk


def class_sums_of(chunk: SparseChunk, n_outputs: int) -> Float64[np.ndarray, "m c"]:
    """Return the sum of the rows of each label."""
    return _transposed_product(chunk, _indicators_of(chunk.labels, n_outputs))


def gradient_of(
    chunk: SparseChunk,
    whole: Float64[np.ndarray, "m c"],
    unit: float,
    kept: Bool[Array, " b"] | None = None,
    *,
    loss: Loss,
    clip_norm: float | None,
    radius: float = math.inf,
) -> Float64[np.ndarray, "m c"]:
    """Return the gradient sum of a chunk, as ``kernels.gradient_of``."""
    residual = _residuals_of(
        chunk.matrix @ whole.T,
        unit,
        chunk.labels,
        chunk.row_norms,
        kept,
        loss=loss,
        clip_norm=clip_norm,
        radius=radius,
    )
    return _transposed_product(chunk, residual)


@partial(jax.jit, static_argnames=("loss", "clip_norm", "radius"))
def _residuals_of(
    products: Float64[Array, "b m"],
    unit: float | Float[Array, ""],
    labels: Int[Array, "b k"],
    row_norms: Float64[Array, " b"],
    kept: Bool[Array, " b"] | None,
    *,
    loss: Loss,
    clip_norm: float | None,
    radius: float,
) -> Float64[Array, "b m"]:
    return clipped_residuals(
        (products * unit).astype(jnp.float32),
        labels,
        row_norms,
        kept,
        loss=loss,
        clip_norm=clip_norm,
        radius=radius,
    )


@partial(jax.jit, static_argnames="n_outputs")
def _indicators_of(
    labels: Int[Array, "b k"], n_outputs: int
) -> Float64[Array, "b {n_outputs}"]:
    return losses.label_indicators(labels, n_outputs).astype(jnp.float64)


def _transposed_product(
    chunk: SparseChunk, narrow: Num[Array, "b m"]
) -> Float64[np.ndarray, "m c"]:
    """Return ``narrow^T rows``."""
    return np.asarray((chunk.matrix.T @ np.asarray(narrow)).T)
