"""Exact sums over records, in chunks; no noise.

Rows and residuals arrive as whole numbers of at most ``2**20`` in absolute value (see
``rows`` and ``clipping``). A product of two is at most ``2**40``, a sum of ``2**13`` of
them at most ``2**53``. So products of up to eight chunks are exact in float64, in any
order, and ``slices`` computes the same in integers. So are ``totals``: int64 words of
40 bits with carries. Scores are exact as well (`whole_coef`). Functions of one row (the
softmax, in float32) always see blocks of one shape, however many there are in a call.
That they treat a row alike wherever it stands in its block is supposed; ``devices``
tries it of the residuals of NumPy alone. Hence what a record contributes depends on
that record and on releases alone, not on its neighbours in the chunk, on chunks,
threads, devices or processes, and a record moves a sum by exactly its contribution.

Without privacy (``step`` is None) rows are ordinary numbers and totals are float64.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, get_args

import jax
import numpy as np
from jaxtyping import Array, Bool, Float

from privfeat._types import Loss
from privfeat.core.bounds.grid import grid_step, whole_coef
from privfeat.core.bounds.sensitivity import largest_residual
from privfeat.core.sums.arithmetic import gram, host, kernels, slices, sparse
from privfeat.core.sums.arithmetic.weighted import checked_weights
from privfeat.core.sums.calls import placed, rows_of_call
from privfeat.core.sums.records import Rows
from privfeat.core.sums.totals import ExactSum, Total, exact_sum

# Memory for the Gram matrices that are summed in one pass: as many as fit.
_GRAMS_BYTES = 2**30
_RESIDUAL_STEPS = {loss: grid_step(largest_residual(loss)) for loss in get_args(Loss)}


def exact_gram(rows: Rows, *, clip_norm: float | None = None) -> ExactSum:
    """Return ``sum x x^T``.

    Bounded by ``sensitivity.gram``. A ``clip_norm``, in feature units, clips the rows
    further for this sum alone.
    """
    # known without a row: a process of a team may have none, and releases the sum
    factors_of, step = gram.factors(rows, clip_norm)
    factors: Iterator[Float[Array, "b c"]] = map(factors_of, rows.chunks())
    total = Total(rows.step is not None, (rows.n_columns, rows.n_columns))
    joined = gram.joined(factors, rows.n_columns) if arithmetic() is host else factors
    by_slices = sliced(rows)
    for block in joined:
        total.add(gram.gram_of(block, by_slices))
    return total.sum(step**2, rows.users)


def exact_class_grams(rows: Rows, n_outputs: int) -> Iterator[ExactSum]:
    """Yield ``sum x x^T`` over the records that carry label 0, 1, and so on.

    Stacked, they are bounded by ``sensitivity.class_grams``.
    """
    private, step, size = rows.step is not None, rows.step or 1.0, rows.n_columns
    n_rows, by_slices = rows_of_call(size), sliced(rows)
    factors_of, _ = gram.factors(rows)
    n_together = max(1, _GRAMS_BYTES // (8 * size**2 + 4 * n_rows * size))
    for start in range(0, n_outputs, n_together):
        labels = range(start, min(start + n_together, n_outputs))
        totals = {label: Total(private, (size, size)) for label in labels}
        # rows of a label, until a block is full; an empty part, so that all have one
        waiting = {label: [np.zeros((0, size), np.float32)] for label in labels}
        for chunk in rows.chunks():
            factors, carried = np.asarray(factors_of(chunk)), np.asarray(chunk.labels)
            for label in np.intersect1d(carried, labels).tolist():
                found = factors[np.any(carried == label, axis=1)]
                if sum(map(len, waiting[label])) + len(found) > n_rows:
                    block, waiting[label] = np.concatenate(waiting[label]), []
                    totals[label].add(gram.gram_of(block, by_slices))
                waiting[label].append(found)
        for label in labels:
            total = totals.pop(label)
            total.add(gram.gram_of(np.concatenate(waiting.pop(label)), by_slices))
            yield total.sum(step**2, rows.users)


def exact_class_sums(rows: Rows, n_outputs: int) -> ExactSum:
    """Return ``b_j = sum of x over the records with label j``, (n_outputs, n_columns).

    Bounded by ``sensitivity.class_sums``.
    """
    step, (module, options) = rows.step or 1.0, of_rows(rows)
    if rows.users is not None:
        options["clip"] = clip = rows.users.of_class_sums(step)
        step /= clip.scale
    part_of = partial(module.class_sums_of, n_outputs=n_outputs, **options)
    shape = (n_outputs, rows.n_columns)
    return exact_sum(rows, shape, step, part_of, None, rows.users)


def exact_gradient(
    rows: Rows,
    coef: Float[np.ndarray, "m c"],
    *,
    loss: Loss,
    clip_norm: float,
    residual_clip_norm: float = math.inf,
    sampler: Callable[[int], Bool[np.ndarray, " b"]] | None = None,
    weights: Float[np.ndarray, " l"] | None = None,
) -> ExactSum:
    """Return the sum of the records' clipped gradients, (n_outputs, n_columns).

    Bounded by ``sensitivity.loss_gradient``.

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
        Called once per chunk with its number of rows; returns which of them take part:
        sensitive.
    weights : array, optional
        Of labels, as `WeightedRows` has them.
    """
    private, step = rows.step is not None, rows.step or 1.0
    module, options = of_rows(rows)
    whole, coef_step = whole_coef(coef, private)
    radius, clip_norm = float(residual_clip_norm), float(clip_norm)
    bounds = (step, loss, len(coef), radius, clip_norm)
    gradient_of = partial(
        module.gradient_of,
        whole=whole if rows.sparse else placed(whole),
        grid_step=coef_step * step,
        loss=loss,
        clip_norm=clip_norm if private else None,
        radius=radius,
        weights=None if weights is None else placed(checked_weights(weights)),
        clip=rows.users and rows.users.of_gradients(*bounds),
        **options,
    )
    gradient_step = step * (_RESIDUAL_STEPS[loss] if private else 1.0)
    return exact_sum(rows, coef.shape, gradient_step, gradient_of, sampler, rows.users)


def exact_curvature_grams(
    rows: Rows, coef: Float[np.ndarray, "m c"], *, loss: Loss
) -> Iterator[ExactSum]:
    """Yield the Hessian block ``sum p_j (1 - p_j) x x^T`` of each output in turn.

    Stacked, they are bounded by ``sensitivity.curvature_grams``. A block is the Gram
    matrix of the rows ``sqrt(p_j (1 - p_j)) x``, rounded towards zero.
    """
    private, step, size = rows.step is not None, rows.step or 1.0, rows.n_columns
    whole, coef_step = whole_coef(coef, private)
    roots_of = partial(
        arithmetic().root_curvatures_of,
        whole=placed(whole),
        grid_step=coef_step * step,
        loss=loss,
        **of_rows(rows)[1],
    )
    by_slices, (factors_of, _) = sliced(rows), gram.factors(rows)
    n_together = max(1, _GRAMS_BYTES // (8 * size**2))
    for start in range(0, len(coef), n_together):
        outputs = range(start, min(start + n_together, len(coef)))
        totals = {output: Total(private, (size, size)) for output in outputs}
        for chunk in rows.chunks():
            with jax.enable_x64(True):
                roots, factors = roots_of(chunk), factors_of(chunk)
                for output, total in totals.items():
                    weighted = gram.weighted_rows(factors, roots[:, output], private)
                    total.add(gram.gram_of(weighted, by_slices))
        for output in outputs:
            # sqrt(p (1 - p)) <= 1/2: half the step keeps the 20 bits of the grid
            yield totals.pop(output).sum((step / 2.0) ** 2, rows.users)


def arithmetic(of_sparse_rows: bool = False) -> Any:
    """Return the module with the arithmetic of a chunk for the devices of a process."""
    if of_sparse_rows:
        return sparse
    return host if jax.default_backend() == "cpu" else kernels


def of_rows(rows: Rows) -> tuple[Any, dict[str, Any]]:
    """Return the module for these rows, and what its functions take beside others."""
    module = arithmetic(rows.sparse)
    return module, {"sliced": sliced(rows)} if module is kernels else {}


def sliced(rows: Rows) -> bool:
    """Return whether products are made of slices: of whole numbers alone."""
    return rows.step is not None and slices.uses_slices()
