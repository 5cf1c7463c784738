"""Exact sums over records, in chunks; no noise.

Rows and residuals arrive as whole numbers of at most ``2**20`` in absolute value (see
``clipping``). A product of two is at most ``2**40``, a chunk of ``2**10`` of them at
most ``2**50``, so float64 matrix products of a chunk are exact in any order of
summation, and so are int64 totals of up to ``2**22`` rows. Scores, the products of a
row with the coefficients, are exact as well: coefficients are cut to whole numbers
whose rows have norm at most ``2**32``. Hence what a record contributes depends on that
record and on releases alone, not on its neighbours in the chunk, on chunks, threads or
devices, and one record moves a sum by exactly its own contribution. Element-wise
functions (the softmax, in float32) always see chunks of the same shape.

Without privacy (``step`` is None) rows are ordinary numbers and totals are float64.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Float64, Int

from privfeat._types import Loss
from privfeat.core import losses
from privfeat.core.clipping import GRID_BITS, SHRINK, clip_residuals, grid_step
from privfeat.core.sensitivity import curvature_norm, largest_residual, residual_norm

CHUNK_ROWS = 2**10
MAX_ROWS = 2**22
_COEF_BITS = 32


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
    """``CHUNK_ROWS`` records, always: the last ones may be empty. Sensitive.

    Attributes
    ----------
    rows : array of shape (n_rows, n_columns), float32
        Bounded rows in units of the grid step, from ``clipping.clip_rows``; zero for
        an empty slot.
    row_norms : array of shape (n_rows,), float64
        Their norms in feature units.
    labels : array of shape (n_rows,), int32
        Class indices; one outside ``[0, n_outputs)`` has the label indicator zero.
    """

    rows: Float32[Array, "b c"]
    row_norms: Float64[Array, " b"]
    labels: Int[Array, " b"]


@runtime_checkable
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
    clip_norm = None if clip_norm is None else float(clip_norm)
    total, unit = _Total(private, (rows.n_columns, rows.n_columns)), step
    for chunk in rows.chunks() if label is None else rows.chunks_of(label):
        factors = chunk.rows
        if private and clip_norm is not None:
            unit = grid_step(clip_norm)
            with jax.enable_x64(True):
                factors = _reclipped_rows(chunk, step, clip_norm)
        total.add(_gram(factors))
    return total.sum(unit**2)


def exact_class_sums(rows: Rows, n_outputs: int) -> ExactSum:
    """Return ``b_j = sum of x over the records with label j``, (n_outputs, n_columns).

    Bounded by ``sensitivity.class_sums``.
    """
    total = _Total(rows.step is not None, (n_outputs, rows.n_columns))
    for chunk in rows.chunks():
        with jax.enable_x64(True):
            total.add(_class_sums(chunk, n_outputs))
    return total.sum(rows.step or 1.0)


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
    total = _Total(private, coef.shape)
    whole, unit = _whole_coef(coef, private)
    limit = float(clip_norm) if private else None
    for chunk in rows.chunks():
        kept = None if sampler is None else sampler(len(chunk.rows))
        with jax.enable_x64(True):
            total.add(_gradient(chunk, whole, unit * step, kept, loss, limit))
    grid = grid_step(largest_residual(loss)) if private else 1.0
    return total.sum(grid * step)


def exact_curvature_grams(
    rows: Rows, coef: Float[np.ndarray, "m c"], *, loss: Loss
) -> Iterator[ExactSum]:
    """Yield the Hessian block ``sum p_j (1 - p_j) x x^T`` of each output in turn.

    Stacked, they are bounded by ``sensitivity.curvature_grams``. A block is the Gram
    matrix of the rows ``sqrt(p_j (1 - p_j)) x``, rounded towards zero.
    """
    private, step = rows.step is not None, rows.step or 1.0
    whole, unit = _whole_coef(coef, private)
    with jax.enable_x64(True):
        roots = [
            _root_curvatures(chunk, whole, unit * step, loss) for chunk in rows.chunks()
        ]
    for output in range(len(coef)):
        total = _Total(private, (rows.n_columns, rows.n_columns))
        for chunk, root in zip(rows.chunks(), roots, strict=True):
            with jax.enable_x64(True):
                weighted = _weighted_rows(chunk.rows, root[:, output], private)
            total.add(_gram(weighted))
        # sqrt(p (1 - p)) <= 1/2: half the step keeps the 20 bits of the grid
        yield total.sum((step / 2.0) ** 2)


def _whole_coef(
    coef: Float[np.ndarray, "m c"], private: bool
) -> tuple[Float64[np.ndarray, "m c"], float]:
    """Return coefficients as whole numbers, rows of norm at most 2**32, and the unit.

    Their products with rows of at most 2**20 have partial sums below 2**52, by Cauchy
    and Schwarz. Coefficients that are not finite make every score NaN.
    """
    largest = float(np.max(np.linalg.norm(coef, axis=1), initial=0.0))
    if not private or largest == 0.0:
        return coef, 1.0
    if not math.isfinite(largest):
        return np.full_like(coef, np.nan), 1.0
    unit = math.ldexp(grid_step(largest), GRID_BITS - _COEF_BITS)
    return np.trunc(coef / unit), unit


@partial(jax.jit, static_argnames="n_outputs")
def _class_sums(chunk: Chunk, n_outputs: int) -> Float64[Array, "m c"]:
    indicator = jax.nn.one_hot(chunk.labels, n_outputs, dtype=jnp.float64)
    return _transposed_product(_wide(chunk.rows), indicator)


@partial(jax.jit, static_argnames=("loss", "clip_norm"))
def _gradient(
    chunk: Chunk,
    whole: Float64[Array, "m c"],
    unit: float | Float[Array, ""],
    kept: Bool[Array, " b"] | None,
    loss: Loss,
    clip_norm: float | None,
) -> Float64[Array, "m c"]:
    """Return the gradient sum of a chunk, in units of both grids with privacy."""
    wide = _wide(chunk.rows)
    residual = losses.residuals(loss, _scores(wide, whole, unit), chunk.labels)
    residual = residual.astype(jnp.float64)
    if clip_norm is not None:
        residual = clip_residuals(
            residual,
            chunk.row_norms,
            clip_norm=clip_norm,
            radius=residual_norm(loss, len(whole)),
            largest=largest_residual(loss),
        )
    if kept is not None:
        residual = jnp.where(kept[:, None], residual, 0.0)
    return _transposed_product(wide, residual)


@partial(jax.jit, static_argnames="loss")
def _root_curvatures(
    chunk: Chunk,
    whole: Float64[Array, "m c"],
    unit: float | Float[Array, ""],
    loss: Loss,
) -> Float64[Array, "b m"]:
    """Return ``sqrt(p (1 - p))``, zero where not finite, with the proved bound."""
    weights = losses.curvatures(loss, _scores(_wide(chunk.rows), whole, unit))
    weights = jnp.clip(jnp.nan_to_num(weights.astype(jnp.float64), nan=0.0), 0.0, 0.25)
    norms = jnp.linalg.norm(weights, axis=1, keepdims=True)
    # float32 probabilities may exceed the real bound by a rounding error
    limit = curvature_norm(loss, len(whole)) * SHRINK
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


def _wide(rows: Float32[Array, "b c"]) -> Float64[Array, "b c"]:
    """Return rows in float64, once: XLA multiplies mixed types ten times as slowly."""
    wide: Float64[Array, "b c"]
    wide = jax.lax.optimization_barrier(  # type: ignore[no-untyped-call]
        rows.astype(jnp.float64)
    )
    return wide


def _scores(
    wide: Float64[Array, "b c"],
    whole: Float64[Array, "m c"],
    unit: float | Float[Array, ""],
) -> Float32[Array, "b m"]:
    return ((wide @ whole.T) * unit).astype(jnp.float32)


def _transposed_product(
    wide: Float64[Array, "b c"], narrow: Float64[Array, "b m"]
) -> Float64[Array, "m c"]:
    """Return ``narrow^T wide``, contracted in the order that XLA does fastest."""
    return jax.lax.dot_general(wide, narrow, (((0,), (0,)), ((), ()))).T


def _gram(rows: Float[Array, "b c"]) -> Float64[Any, "c c"]:
    """Return ``rows^T rows``.

    On a CPU by NumPy, whose BLAS does this product three times as fast as XLA; being
    exact, the result is the same.
    """
    if jax.default_backend() == "cpu":
        host = np.asarray(rows).astype(np.float64, copy=False)
        return np.asarray(host.T @ host)
    with jax.enable_x64(True):
        wide = jnp.asarray(rows, jnp.float64)
        return wide.T @ wide


class _Total:
    """A running total: int64, hence exact, with privacy; float64 without."""

    def __init__(self, private: bool, shape: tuple[int, ...]) -> None:
        self._dtype = np.int64 if private else np.float64
        self._shape = shape
        self._total: Any = 0

    def add(self, part: Float64[Any, "p q"]) -> None:
        with jax.enable_x64(True):
            self._total += part.astype(self._dtype)

    def sum(self, unit: float) -> ExactSum:
        value = np.asarray(self._total, np.float64) * unit
        return ExactSum(np.array(np.broadcast_to(value, self._shape)))
