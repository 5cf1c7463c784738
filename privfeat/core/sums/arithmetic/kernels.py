"""The arithmetic of one chunk, compiled: scores, residuals, and products of them.

Everything is in steps of the grids of ``grid``, and exact as ``statistics`` says, for
accelerators; ``host`` has faster ones of the same names for CPUs, and what has no
products is here for all. ``sliced`` makes products of whole numbers of ``slices``; they
are the same.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Float64, Int, Num

from privfeat._types import Loss
from privfeat.core.bounds import losses
from privfeat.core.bounds.clipping import bounded_roots, clip_residuals
from privfeat.core.bounds.sensitivity import largest_residual, residual_norm
from privfeat.core.bounds.user_clips import SumClip
from privfeat.core.bounds.users import clip_users, inner_products
from privfeat.core.sums.arithmetic import slices
from privfeat.core.sums.calls import by_chunks
from privfeat.core.sums.records import Chunk

# Settings of the process, such as jax_default_matmul_precision, may ask for less.
EXACT = jax.lax.Precision.HIGHEST


@partial(jax.jit, static_argnames=("n_outputs", "sliced", "clip"))
def class_sums_of(
    chunk: Chunk, n_outputs: int, sliced: bool = False, clip: SumClip | None = None
) -> Num[Array, "m c"]:
    """Return the sum of the rows of each label; in ``2**-20`` of them with ``clip``."""
    narrow = losses.label_indicators(chunk.labels, n_outputs).astype(jnp.float64)
    if clip is not None:
        narrow = _of_users(narrow, chunk, clip)
    return _transposed_product(_wide(chunk.rows, sliced), narrow, sliced)


@partial(jax.jit, static_argnames=("loss", "clip_norm", "radius", "sliced", "clip"))
def gradient_of(
    chunk: Chunk,
    kept: Bool[Array, " b"] | None = None,
    *,
    whole: Float64[Array, "m c"],
    grid_step: float | Float[Array, ""],
    loss: Loss,
    clip_norm: float | None,
    radius: float = math.inf,
    weights: Float64[Array, " l"] | None = None,
    sliced: bool = False,
    clip: SumClip | None = None,
) -> Num[Array, "m c"]:
    """Return the gradient sum of a chunk.

    With privacy its grid step is that of the rows times that of the residuals.
    """
    wide = _wide(chunk.rows, sliced)

    def residuals_of(
        scores: Float32[Array, "b m"],
        labels: Int[Array, "b k"],
        row_norms: Float64[Array, " b"],
    ) -> Float64[Array, "b m"]:
        residual: Float64[Array, "b m"]
        residual = losses.residuals(loss, scores, labels).astype(jnp.float64)
        weight = None if weights is None else weights[labels[:, 0]]
        if clip_norm is not None:
            residual = clip_residuals(
                residual,
                row_norms,
                clip_norm=clip_norm,
                radius=min(radius, residual_norm(loss, len(whole))),
                largest=largest_residual(loss),
                weights=weight,
            )
        elif weight is not None:
            residual *= weight[:, None]
        return residual

    scores = _scores(wide, whole, grid_step, sliced)
    residual = by_chunks(residuals_of, scores, chunk.labels, chunk.row_norms)
    if kept is not None:
        residual = jnp.where(kept[:, None], residual, 0.0)
    if clip is not None:
        residual = _of_users(residual, chunk, clip)
    return _transposed_product(wide, residual, sliced)


@partial(jax.jit, static_argnames=("loss", "sliced"))
def root_curvatures_of(
    chunk: Chunk,
    whole: Float64[Array, "m c"],
    grid_step: float | Float[Array, ""],
    loss: Loss,
    sliced: bool = False,
) -> Float64[Array, "b m"]:
    """Return ``sqrt(p (1 - p))``, bounded."""
    scores = _scores(_wide(chunk.rows, sliced), whole, grid_step, sliced)
    roots: Float64[Array, "b m"] = by_chunks(
        lambda part: bounded_roots(losses.curvatures(loss, part), loss), scores
    )
    return roots


def _of_users(
    narrow: Float64[Array, "b m"], chunk: Chunk, clip: SumClip
) -> Float64[Array, "b m"]:
    """Return factors of the rows, such that sums of users are clipped."""

    def part(
        narrow: Float64[Array, "p m"],
        rows: Float32[Array, "p c"],
        users: Int[Array, " p"],
    ) -> Any:
        return clip_users(narrow, inner_products(rows, clip.block), users, clip)

    users: Any = chunk.users
    found: Float64[Array, "b m"] = by_chunks(part, narrow, chunk.rows, users)
    return found


def _wide(rows: Float32[Array, "b c"], sliced: bool) -> Float[Array, "b c"]:
    """Return rows in float64, once: XLA multiplies mixed types ten times as slowly."""
    return rows if sliced else _copied(rows.astype(jnp.float64))


def _copied(values: Float64[Array, "p q"]) -> Float64[Array, "p q"]:
    """Return values that XLA computes once, in memory, and does not fuse."""
    copy: Float64[Array, "p q"]
    copy = jax.lax.optimization_barrier(values)  # type: ignore[no-untyped-call]
    return copy


def _scores(
    wide: Float[Array, "b c"],
    whole: Float64[Array, "m c"],
    grid_step: float | Float[Array, ""],
    sliced: bool,
) -> Float32[Array, "b m"]:
    return (_product(wide, whole, sliced) * grid_step).astype(jnp.float32)


def _product(
    wide: Float[Array, "b c"], whole: Float64[Array, "m c"], sliced: bool
) -> Float64[Array, "b m"]:
    """Return ``wide whole^T``."""
    if sliced:
        return slices.scores(wide, whole)
    return jnp.matmul(wide, _copied(whole.T), precision=EXACT)


def _transposed_product(
    wide: Float[Array, "b c"], narrow: Float64[Array, "b m"], sliced: bool
) -> Num[Array, "m c"]:
    """Return ``narrow^T wide``: in int64 if ``sliced``, else in float64."""
    if sliced:
        return slices.product(narrow.T, wide.T)
    return jnp.matmul(narrow.T, wide, precision=EXACT)


@partial(jax.jit, static_argnames="sliced")
def products_of(
    rows: Float32[Array, "b c"],
    narrow: Float64[Array, "b m"],
    coef: Float64[Array, "m c"],
    sliced: bool = False,
) -> tuple[Num[Array, "m c"], Float64[Array, "b m"]]:
    """Return ``narrow^T rows`` and ``rows / 32 coef^T``: for ``devices`` to check."""
    short = _copied(jnp.floor(rows.astype(jnp.float64) / 32.0))
    sums = _transposed_product(_wide(rows, sliced), narrow, sliced)
    return sums, _product(short, coef, sliced)


@partial(jax.jit, donate_argnames="total")
def added(total: Num[Array, "..."], part: Num[Array, "..."]) -> Num[Array, "..."]:
    """Return the total with a chunk sum added, in the total's type and place."""
    return total + part.astype(total.dtype)
