"""Exact sums over records, in chunks; no noise.

Rows and residuals arrive as whole numbers of at most ``2**20`` in absolute value (see
``clipping``). A product of two is at most ``2**40``, a chunk of ``2**10`` of them at
most ``2**50``, so float64 matrix products of a chunk are exact in any order of
summation, and so are ``totals``: int64 words of 40 bits with carries. Scores, the
products of a row with the coefficients, are exact as well: coefficients are cut to
whole numbers whose rows have norm at most ``2**32``. Hence what a record contributes
depends on that record and on releases alone, not on its neighbours in the chunk, on
chunks, threads, devices or processes, and one record moves a sum by exactly its own
contribution. Element-wise functions (the softmax, in float32) always see chunks of the
same shape.

Without privacy (``step`` is None) rows are ordinary numbers and totals are float64.
"""

import math
from collections.abc import Callable, Iterator

import jax
import numpy as np
from jaxtyping import Bool, Float

from privfeat._types import Loss
from privfeat.core.bounds.grid import grid_step
from privfeat.core.bounds.sensitivity import largest_residual
from privfeat.core.sums import kernels
from privfeat.core.sums.records import CHUNK_ROWS, Rows
from privfeat.core.sums.totals import ExactSum, Total

# Memory for the Gram matrices that are summed in one pass over the records.
_GRAMS_BYTES = 2**30


def exact_gram(rows: Rows, *, clip_norm: float | None = None) -> ExactSum:
    """Return ``sum x x^T``.

    Bounded by ``sensitivity.gram``. A ``clip_norm``, in feature units, clips the rows
    further for this sum alone.
    """
    private, step = rows.step is not None, rows.step or 1.0
    clip_norm = float(clip_norm) if private and clip_norm is not None else None
    # known without a row: a process of a team may have none, and releases the sum
    unit = step if clip_norm is None else grid_step(clip_norm)
    total = Total(private, (rows.n_columns, rows.n_columns))
    for chunk in rows.chunks():
        factors = chunk.rows
        if clip_norm is not None:
            with jax.enable_x64(True):
                factors = kernels.reclipped_rows_of(chunk, step, clip_norm)
        total.add(kernels.gram_of(factors))
    return total.sum(unit**2)


def exact_class_grams(rows: Rows, n_outputs: int) -> Iterator[ExactSum]:
    """Yield ``sum x x^T`` over the records that carry label 0, 1, and so on.

    Stacked, they are bounded by ``sensitivity.class_grams``. As many are summed in one
    pass as fit into a gibibyte, whatever the sizes of the classes.
    """
    size = rows.n_columns
    n_together = max(1, _GRAMS_BYTES // (8 * size**2 + 4 * CHUNK_ROWS * size))
    for start in range(0, n_outputs, n_together):
        labels = range(start, min(start + n_together, n_outputs))
        grams = {label: _GatheredGram(rows) for label in labels}
        for chunk in rows.chunks():
            factors, carried = np.asarray(chunk.rows), np.asarray(chunk.labels)
            for label in np.intersect1d(carried, labels).tolist():
                grams[label].add(factors[np.any(carried == label, axis=1)])
        for label in labels:
            yield grams.pop(label).sum()


def exact_class_sums(rows: Rows, n_outputs: int) -> ExactSum:
    """Return ``b_j = sum of x over the records with label j``, (n_outputs, n_columns).

    Bounded by ``sensitivity.class_sums``.
    """
    total = Total(rows.step is not None, (n_outputs, rows.n_columns))
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
    residual_clip_norm: float = math.inf,
    sampler: Callable[[int], Bool[np.ndarray, " b"]] | None = None,
) -> ExactSum:
    """Return the sum of the records' clipped gradients, (n_outputs, n_columns).

    Bounded by ``sensitivity.loss_gradient``. A ``clip_norm`` of ``residual_norm(loss) *
    C`` clips nothing.

    Parameters
    ----------
    rows : Rows
    coef : array of shape (n_outputs, n_columns)
        Per feature unit. Public.
    loss : {"sigmoid", "softmax", "squared"}
    clip_norm : float
        In gradient units; without effect without privacy. Public.
    residual_clip_norm : float
        Bound on the norm of a residual ``p - y``, if below `residual_norm`. Public.
    sampler : callable, optional
        Called once per chunk with its number of rows; returns which of them take part.
        Its result is sensitive.
    """
    private, step = rows.step is not None, rows.step or 1.0
    total = Total(private, coef.shape)
    whole, unit = kernels.whole_coef(coef, private)
    limit = float(clip_norm) if private else None
    radius = float(residual_clip_norm)
    for chunk in rows.chunks():
        kept = None if sampler is None else sampler(len(chunk.rows))
        with jax.enable_x64(True):
            total.add(
                kernels.gradient_of(
                    chunk, whole, unit * step, kept, loss, limit, radius
                )
            )
    grid = grid_step(largest_residual(loss)) if private else 1.0
    return total.sum(grid * step)


def exact_curvature_grams(
    rows: Rows, coef: Float[np.ndarray, "m c"], *, loss: Loss
) -> Iterator[ExactSum]:
    """Yield the Hessian block ``sum p_j (1 - p_j) x x^T`` of each output in turn.

    Stacked, they are bounded by ``sensitivity.curvature_grams``. A block is the Gram
    matrix of the rows ``sqrt(p_j (1 - p_j)) x``, rounded towards zero. As many are
    summed in one pass as fit into a gibibyte.
    """
    private, step, size = rows.step is not None, rows.step or 1.0, rows.n_columns
    whole, unit = kernels.whole_coef(coef, private)
    n_together = max(1, _GRAMS_BYTES // (8 * size**2))
    for start in range(0, len(coef), n_together):
        outputs = range(start, min(start + n_together, len(coef)))
        totals = {output: Total(private, (size, size)) for output in outputs}
        for chunk in rows.chunks():
            with jax.enable_x64(True):
                roots = kernels.root_curvatures_of(chunk, whole, unit * step, loss)
            for output, total in totals.items():
                with jax.enable_x64(True):
                    root = roots[:, output]
                    weighted = kernels.weighted_rows(chunk.rows, root, private)
                total.add(kernels.gram_of(weighted))
        for output in outputs:
            # sqrt(p (1 - p)) <= 1/2: half the step keeps the 20 bits of the grid
            yield totals.pop(output).sum((step / 2.0) ** 2)


class _GatheredGram:
    """The Gram matrix of rows that come a few at a time, in full chunks."""

    def __init__(self, rows: Rows) -> None:
        self._step = rows.step or 1.0
        self._total = Total(rows.step is not None, (rows.n_columns, rows.n_columns))
        self._waiting: list[Float[np.ndarray, "p c"]] = []
        self._n_waiting = 0

    def add(self, rows: Float[np.ndarray, "p c"]) -> None:
        """Add at most a chunk of rows."""
        if self._n_waiting + len(rows) > CHUNK_ROWS:
            self._multiply()
        self._waiting.append(rows)
        self._n_waiting += len(rows)

    def sum(self) -> ExactSum:
        self._multiply()
        return self._total.sum(self._step**2)

    def _multiply(self) -> None:
        if self._waiting:
            self._total.add(kernels.gram_of(np.concatenate(self._waiting)))
        self._waiting, self._n_waiting = [], 0
