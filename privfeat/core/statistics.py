"""Exact sums over records, in chunks; no noise.

Rows and residuals arrive as whole numbers of at most ``2**20`` in absolute value (see
``clipping``). A product of two is below ``2**40``, a chunk of ``2**12`` of them below
``2**52``, so float64 matrix products of a chunk are exact in any order of summation,
and so are int64 totals of up to ``2**22`` rows. The result therefore does not depend on
chunks, threads or devices, and one record moves it by exactly its own contribution.

Without privacy (``step`` is None) rows are ordinary numbers and totals are float64.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Float64, Int

from privfeat._types import Loss
from privfeat.core import losses
from privfeat.core.clipping import SHRINK, clip_residuals, grid_step
from privfeat.core.sensitivity import curvature_norm, largest_residual, residual_norm

CHUNK_ROWS = 2**12
MAX_ROWS = 2**22
# Rows converted to float64 at a time on a CPU: the block stays in cache when the
# product is narrow; a Gram product prefers one call for the whole chunk.
_NARROW_BLOCK = 512


@dataclass(frozen=True)
class ExactSum:
    """A sum over records before noise. Sensitive: only ``mechanisms`` may release it.

    Attributes
    ----------
    value : array of float64
        In units of the statistic.
    """

    value: Float64[np.ndarray, "..."]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("rows", "row_norms", "labels"),
    meta_fields=(),
)
@dataclass(frozen=True)
class Chunk:
    """At most ``CHUNK_ROWS`` records; padding rows are zero. Sensitive.

    Attributes
    ----------
    rows : array of shape (n_rows, n_columns), float32
        Bounded rows in units of the grid step, from ``clipping.clip_rows``.
    row_norms : array of shape (n_rows,), float64
        Their norms in feature units.
    labels : array of shape (n_rows,), int32
        Class indices; one outside ``[0, n_outputs)`` has the label indicator zero.
    """

    rows: Float32[Array, "b c"]
    row_norms: Float64[Array, " b"]
    labels: Int[Array, " b"]


class Rows(Protocol):
    """The bounded records of a fit, readable any number of times."""

    step: float | None
    n_columns: int

    def chunks(self) -> Iterator[Chunk]:
        """Yield all records."""
        ...

    def chunks_of(self, label: int) -> Iterator[Chunk]:
        """Yield the records that carry ``label``."""
        ...


def exact_gram(
    rows: Rows, *, label: int | None = None, clip_norm: float | None = None
) -> ExactSum:
    """Return ``sum x x^T`` over all records, or over those that carry ``label``.

    Bounded by ``sensitivity.gram`` and, stacked over labels, ``class_grams``. A
    ``clip_norm``, in feature units, clips the rows further for this sum alone.
    """
    private, step = rows.step is not None, rows.step or 1.0
    total, unit = _Total(private), step
    for chunk in rows.chunks() if label is None else rows.chunks_of(label):
        factors = chunk.rows
        if private and clip_norm is not None:
            unit = grid_step(clip_norm)
            with jax.enable_x64(True):
                factors = _reclipped_rows(chunk, step, clip_norm)
        total.add(_product(factors, factors))
    return total.sum(unit**2, (rows.n_columns, rows.n_columns))


def exact_class_sums(rows: Rows, n_outputs: int) -> ExactSum:
    """Return ``b_j = sum of x over the records with label j``, (n_outputs, n_columns).

    Bounded by ``sensitivity.class_sums``.
    """
    total = _Total(rows.step is not None)
    for chunk in rows.chunks():
        with jax.enable_x64(True):
            indicator = jax.nn.one_hot(chunk.labels, n_outputs, dtype=jnp.float64)
        total.add(_product(indicator, chunk.rows))
    return total.sum(rows.step or 1.0, (n_outputs, rows.n_columns))


def exact_gradient(
    rows: Rows,
    coef: Float[np.ndarray, "m c"],
    *,
    loss: Loss,
    clip_norm: float,
    sampler: Callable[[int], Bool[np.ndarray, " b"]] | None = None,
) -> ExactSum:
    """Return the sum of the records' clipped gradients, (n_outputs, n_columns).

    Bounded by ``sensitivity.clipped_gradient(clip_norm)``. A ``clip_norm`` of
    ``residual_norm(loss) * C`` clips nothing, and gives ``sensitivity.loss_gradient``.

    Parameters
    ----------
    rows : Rows
    coef : array of shape (n_outputs, n_columns)
        Per feature unit. Public.
    loss : {"sigmoid", "softmax", "squared"}
    clip_norm : float
        In gradient units; without effect without privacy. Public.
    sampler : callable, optional
        Called once per chunk with its number of rows; returns which of them take part.
        Its result is sensitive.
    """
    private, step = rows.step is not None, rows.step or 1.0
    total = _Total(private)
    scaled = _scaled_coef(coef, step)
    for chunk in rows.chunks():
        with jax.enable_x64(True):
            residual = _residuals(chunk, scaled, loss, clip_norm if private else None)
            if sampler is not None:
                residual = residual * jnp.asarray(sampler(len(residual)))[:, None]
        total.add(_product(residual, chunk.rows))
    unit = grid_step(largest_residual(loss)) if private else 1.0
    return total.sum(unit * step, coef.shape)


def exact_curvature_grams(
    rows: Rows, coef: Float[np.ndarray, "m c"], *, loss: Loss
) -> Iterator[ExactSum]:
    """Yield the Hessian block ``sum p_j (1 - p_j) x x^T`` of each output in turn.

    Stacked, they are bounded by ``sensitivity.curvature_grams``. A block is the Gram
    matrix of the rows ``sqrt(p_j (1 - p_j)) x``, rounded towards zero.
    """
    private = rows.step is not None
    # sqrt(p (1 - p)) <= 1/2: half the step keeps the 20 bits of the grid.
    step = (rows.step or 1.0) / 2.0
    scaled = _scaled_coef(coef, rows.step or 1.0)
    with jax.enable_x64(True):
        roots = [_root_curvatures(chunk, scaled, loss) for chunk in rows.chunks()]
    for output in range(coef.shape[0]):
        total = _Total(private)
        for chunk, root in zip(rows.chunks(), roots, strict=True):
            with jax.enable_x64(True):
                weighted = _weighted_rows(chunk.rows, root[:, output], private)
            total.add(_product(weighted, weighted))
        yield total.sum(step**2, (rows.n_columns, rows.n_columns))


def _scaled_coef(coef: Float[np.ndarray, "m c"], step: float) -> Float[Array, "m c"]:
    """Return coefficients for rows in units of the grid step."""
    with np.errstate(over="ignore"):  # infinite scores give residuals of zero
        return jnp.asarray((coef * step).astype(np.float32))


@partial(jax.jit, static_argnames=("loss", "clip_norm"))
def _residuals(
    chunk: Chunk, scaled: Float[Array, "m c"], loss: Loss, clip_norm: float | None
) -> Float64[Array, "b m"]:
    scores = chunk.rows @ scaled.T
    residual = losses.residuals(loss, scores, chunk.labels).astype(jnp.float64)
    if clip_norm is None:
        return residual
    return clip_residuals(
        residual,
        chunk.row_norms,
        clip_norm=clip_norm,
        radius=residual_norm(loss, scaled.shape[0]),
        largest=largest_residual(loss),
    )


@partial(jax.jit, static_argnames="loss")
def _root_curvatures(
    chunk: Chunk, scaled: Float[Array, "m c"], loss: Loss
) -> Float64[Array, "b m"]:
    """Return ``sqrt(p (1 - p))``, zero where not finite, with the proved bound."""
    scores = chunk.rows @ scaled.T
    weights = losses.curvatures(loss, scores).astype(jnp.float64)
    weights = jnp.clip(jnp.nan_to_num(weights, nan=0.0), 0.0, 0.25)
    norms = jnp.linalg.norm(weights, axis=1, keepdims=True)
    # float32 probabilities may exceed the real bound by a rounding error
    limit = curvature_norm(loss, scaled.shape[0]) * SHRINK
    return jnp.sqrt(weights * jnp.minimum(1.0, limit / jnp.maximum(norms, limit)))


@partial(jax.jit, static_argnames=("step", "clip_norm"))
def _reclipped_rows(
    chunk: Chunk, step: float, clip_norm: float
) -> Float64[Array, "b c"]:
    """Return rows of norm at most ``clip_norm``, in units of its own grid step."""
    norms = jnp.maximum(chunk.row_norms, clip_norm)
    factor = clip_norm / norms * (SHRINK * step / grid_step(clip_norm))
    return jnp.trunc(chunk.rows.astype(jnp.float64) * factor[:, None])


@partial(jax.jit, static_argnames="private")
def _weighted_rows(
    rows: Float32[Array, "b c"], root: Float64[Array, " b"], private: bool
) -> Float64[Array, "b c"]:
    weighted = rows.astype(jnp.float64) * (2.0 * root)[:, None]
    return jnp.trunc(weighted) if private else weighted


def _product(
    left: Float[Array, "b p"], right: Float[Array, "b q"]
) -> Float64[Any, "p q"]:
    """Return ``left^T right`` in float64: exact for whole numbers of the grid.

    On a CPU by NumPy, whose BLAS multiplies float64 two to three times as fast as
    XLA; being exact, the result is the same.
    """
    if jax.default_backend() != "cpu":
        with jax.enable_x64(True):
            return _device_product(left, right)
    a, b = np.asarray(left), np.asarray(right)
    if left is right:
        a = b = b.astype(np.float64, copy=False)
        return np.asarray(a.T @ b)
    out = np.zeros((a.shape[1], b.shape[1]))
    for start in range(0, len(a), _NARROW_BLOCK):
        part = slice(start, start + _NARROW_BLOCK)
        out += a[part].astype(np.float64).T @ b[part].astype(np.float64)
    return out


@jax.jit
def _device_product(
    left: Float[Array, "b p"], right: Float[Array, "b q"]
) -> Float64[Array, "p q"]:
    return jnp.matmul(left.astype(jnp.float64).T, right.astype(jnp.float64))


class _Total:
    """A running total: int64, hence exact, with privacy; float64 without."""

    def __init__(self, private: bool) -> None:
        self._private = private
        self._total: Any = 0

    def add(self, part: Float64[Any, "p q"]) -> None:
        with jax.enable_x64(True):
            self._total += part.astype(np.int64) if self._private else part

    def sum(self, unit: float, shape: tuple[int, ...]) -> ExactSum:
        value = np.asarray(self._total, np.float64) * unit
        return ExactSum(np.broadcast_to(value, shape).copy())
