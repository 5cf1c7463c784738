"""The arithmetic of one chunk, compiled: scores, residuals, and products of them.

Everything is in units of the grids of ``grid``, and exact as ``statistics`` says.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Float64, Int, Num

from privfeat._types import Loss
from privfeat.core.bounds import losses
from privfeat.core.bounds.clipping import SHRINK, clip_residuals
from privfeat.core.bounds.grid import grid_step
from privfeat.core.bounds.sensitivity import (
    curvature_norm,
    largest_residual,
    residual_norm,
)
from privfeat.core.sums.records import Chunk

# Settings of the process, such as jax_default_matmul_precision, may ask for less.
EXACT = jax.lax.Precision.HIGHEST


@partial(jax.jit, static_argnames="n_outputs")
def class_sums_of(chunk: Chunk, n_outputs: int) -> Float64[Array, "m c"]:
    """Return the sum of the rows of each label."""
    indicators = losses.label_indicators(chunk.labels, n_outputs)
    return _transposed_product(_wide(chunk.rows), indicators.astype(jnp.float64))


@partial(jax.jit, static_argnames=("loss", "clip_norm", "radius"))
def gradient_of(
    chunk: Chunk,
    whole: Float64[Array, "m c"],
    unit: float | Float[Array, ""],
    kept: Bool[Array, " b"] | None = None,
    *,
    loss: Loss,
    clip_norm: float | None,
    radius: float = math.inf,
) -> Float64[Array, "m c"]:
    """Return the gradient sum of a chunk.

    With privacy its unit is the grid step of the rows times that of the residuals.
    """
    wide = _wide(chunk.rows)
    residual = clipped_residuals(
        _scores(wide, whole, unit),
        chunk.labels,
        chunk.row_norms,
        kept,
        loss=loss,
        clip_norm=clip_norm,
        radius=radius,
    )
    return _transposed_product(wide, residual)


def clipped_residuals(
    scores: Float32[Array, "b m"],
    labels: Int[Array, "b k"],
    row_norms: Float64[Array, " b"],
    kept: Bool[Array, " b"] | None,
    *,
    loss: Loss,
    clip_norm: float | None,
    radius: float,
) -> Float64[Array, "b m"]:
    """Return residuals, in units of their grid with privacy; zero if not ``kept``."""
    residual = losses.residuals(loss, scores, labels).astype(jnp.float64)
    if clip_norm is not None:
        residual = clip_residuals(
            residual,
            row_norms,
            clip_norm=clip_norm,
            radius=min(radius, residual_norm(loss, scores.shape[1])),
            largest=largest_residual(loss),
        )
    return residual if kept is None else jnp.where(kept[:, None], residual, 0.0)


@partial(jax.jit, static_argnames="loss")
def root_curvatures_of(
    chunk: Chunk,
    whole: Float64[Array, "m c"],
    unit: float | Float[Array, ""],
    loss: Loss,
) -> Float64[Array, "b m"]:
    """Return ``sqrt(p (1 - p))``, 0 for NaN, cut to the bound of `curvature_norm`."""
    weights = losses.curvatures(loss, _scores(_wide(chunk.rows), whole, unit))
    weights = jnp.clip(jnp.nan_to_num(weights.astype(jnp.float64), nan=0.0), 0.0, 0.25)
    norms = jnp.linalg.norm(weights, axis=1, keepdims=True)
    # float32 probabilities may exceed the real bound by a rounding error
    limit = curvature_norm(loss, len(whole)) * SHRINK
    return jnp.sqrt(weights * (limit / jnp.maximum(norms, limit)))


@partial(jax.jit, static_argnames=("step", "clip_norm"))
def reclipped_rows_of(
    chunk: Chunk, step: float, clip_norm: float
) -> Float64[Array, "b c"]:
    """Return rows of norm at most ``clip_norm``, in units of its own grid step."""
    norms = jnp.maximum(chunk.row_norms, clip_norm)
    factor = clip_norm / norms * (SHRINK * step / grid_step(clip_norm))
    return jnp.trunc(chunk.rows.astype(jnp.float64) * factor[:, None])


@partial(jax.jit, static_argnames="private")
def weighted_rows(
    rows: Float32[Array, "b c"], root: Float64[Array, " b"], private: bool
) -> Float64[Array, "b c"]:
    """Return rows times ``root <= 1/2``, in half steps of the grid of the rows."""
    weighted = rows.astype(jnp.float64) * (2.0 * root)[:, None]
    return jnp.trunc(weighted) if private else weighted


def _wide(rows: Float32[Array, "b c"]) -> Float64[Array, "b c"]:
    """Return rows in float64, once: XLA multiplies mixed types ten times as slowly."""
    return _copied(rows.astype(jnp.float64))


def _copied(values: Float64[Array, "p q"]) -> Float64[Array, "p q"]:
    """Return values that XLA computes once, in memory, and does not fuse."""
    copy: Float64[Array, "p q"]
    copy = jax.lax.optimization_barrier(values)  # type: ignore[no-untyped-call]
    return copy


def _scores(
    wide: Float64[Array, "b c"],
    whole: Float64[Array, "m c"],
    unit: float | Float[Array, ""],
) -> Float32[Array, "b m"]:
    products = jnp.matmul(wide, _copied(whole.T), precision=EXACT)
    return (products * unit).astype(jnp.float32)


def _transposed_product(
    wide: Float64[Array, "b c"], narrow: Float64[Array, "b m"]
) -> Float64[Array, "m c"]:
    """Return ``narrow^T wide``.

    On a CPU from transposed copies: XLA sums over rows three times as slowly as over
    columns.
    """
    if jax.default_backend() != "cpu":
        return jnp.matmul(narrow.T, wide, precision=EXACT)
    flat, tall = _copied(narrow.T), _copied(wide.T)
    contract = (((1,), (1,)), ((), ()))
    return jax.lax.dot_general(flat, tall, contract, precision=EXACT)


@jax.jit
def products_of(
    rows: Float32[Array, "b c"],
    narrow: Float64[Array, "b m"],
    coef: Float64[Array, "m c"],
) -> tuple[Float64[Array, "m c"], Float64[Array, "b m"]]:
    """Return ``narrow^T rows`` and ``rows / 32 coef^T``: for ``devices`` to check."""
    wide = _wide(rows)
    short = _copied(jnp.floor(wide / 32.0))
    scores = jnp.matmul(short, _copied(coef.T), precision=EXACT)
    return _transposed_product(wide, narrow), scores


@partial(jax.jit, donate_argnames="total")
def added(total: Num[Array, "..."], part: Float64[Array, "..."]) -> Num[Array, "..."]:
    """Return the total with a chunk sum added, in the total's type and place."""
    return total + part.astype(total.dtype)
