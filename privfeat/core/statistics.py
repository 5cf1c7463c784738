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

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, Float64, Shaped

from privfeat._types import Loss
from privfeat.core import kernels
from privfeat.core.clipping import grid_step
from privfeat.core.records import Rows
from privfeat.core.sensitivity import largest_residual


@dataclass(frozen=True)
class ExactSum:
    """A sum over records before noise. Sensitive: only ``mechanisms`` may release it.

    Attributes
    ----------
    total : array of int64, or of float64 without privacy
        In units of the grid.
    unit : float
        Of the grid, in units of the statistic; a power of two.
    """

    total: Shaped[np.ndarray, "..."]
    unit: float = 1.0

    @property
    def value(self) -> Float64[np.ndarray, "..."]:
        """The sum in units of the statistic, rounded to float64."""
        return np.asarray(self.total.astype(np.float64) * self.unit)


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
                factors = kernels.reclipped_rows_of(chunk, step, clip_norm)
        total.add(kernels.gram_of(factors))
    return total.sum(unit**2)


def exact_class_sums(rows: Rows, n_outputs: int) -> ExactSum:
    """Return ``b_j = sum of x over the records with label j``, (n_outputs, n_columns).

    Bounded by ``sensitivity.class_sums``.
    """
    total = _Total(rows.step is not None, (n_outputs, rows.n_columns))
    for chunk in rows.chunks():
        with jax.enable_x64(True):
            total.add(kernels.class_sums_of(chunk, n_outputs))
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
    whole, unit = kernels.whole_coef(coef, private)
    limit = float(clip_norm) if private else None
    for chunk in rows.chunks():
        kept = None if sampler is None else sampler(len(chunk.rows))
        with jax.enable_x64(True):
            total.add(kernels.gradient_of(chunk, whole, unit * step, kept, loss, limit))
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
    whole, unit = kernels.whole_coef(coef, private)
    with jax.enable_x64(True):
        roots = [
            kernels.root_curvatures_of(chunk, whole, unit * step, loss)
            for chunk in rows.chunks()
        ]
    for output in range(len(coef)):
        total = _Total(private, (rows.n_columns, rows.n_columns))
        for chunk, root in zip(rows.chunks(), roots, strict=True):
            with jax.enable_x64(True):
                weighted = kernels.weighted_rows(chunk.rows, root[:, output], private)
            total.add(kernels.gram_of(weighted))
        # sqrt(p (1 - p)) <= 1/2: half the step keeps the 20 bits of the grid
        yield total.sum((step / 2.0) ** 2)


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
        total = np.asarray(self._total, self._dtype)
        return ExactSum(np.array(np.broadcast_to(total, self._shape)), unit)
