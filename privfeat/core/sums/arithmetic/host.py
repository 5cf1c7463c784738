"""The arithmetic of one chunk on a CPU, by NumPy, with one read of its rows.

As ``kernels``, which has what accelerators run: the same functions, exact for the same
reason. A block of rows is widened to float64 once, and multiplied by coefficients and
by residuals; where outputs are few, one batch of rows after the other, which changes no
sum of whole numbers within ``2**53``. Several threads may each have a chunk.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, get_args

import numpy as np
from jaxtyping import Array, Bool, Float32, Float64

from privfeat._types import Loss
from privfeat.core.bounds import losses
from privfeat.core.bounds.clipping import bounded_roots
from privfeat.core.bounds.user_clips import SumClip
from privfeat.core.bounds.users import clip_users, inner_products
from privfeat.core.sums.arithmetic.residuals import residuals_of, scaled
from privfeat.core.sums.records import CHUNK_ROWS, Chunk

# Fewer rows cost more calls, between which threads wait for each other.
_LEAST_ROWS = 512
# OpenBLAS copies its factors, unless a product has at most so many terms: that costs as
# much as ten outputs. With more than 16 it is faster to multiply a block at once.
_FEW_OUTPUTS = 16
_BATCH_ROWS = 64
_BATCH_TERMS = 10**6


def class_sums_of(
    chunk: Chunk, n_outputs: int, clip: SumClip | None = None
) -> Float64[np.ndarray, "m c"]:
    """Return the sum of the rows of each label; in ``2**-20`` of them with ``clip``."""
    labels = np.asarray(chunk.labels)
    total = np.zeros((n_outputs, chunk.rows.shape[1]))
    for part, wide in _blocks(chunk.rows, n_outputs):
        narrow = losses.label_indicators(labels[part], n_outputs).astype(np.float64)
        narrow = _of_users(narrow, wide, chunk.users, part, clip)
        total += _transposed_product(wide, narrow)
    return total


def gradient_of(
    chunk: Chunk,
    kept: Bool[np.ndarray, " b"] | None = None,
    *,
    whole: Float64[np.ndarray, "m c"],
    grid_step: float,
    clip: SumClip | None = None,
    **bounds: Any,
) -> Float64[np.ndarray, "m c"]:
    """Return the gradient sum of a chunk; the ``bounds`` are those of `residuals_of`.

    With privacy its grid step is that of the rows times that of the residuals.
    """
    labels, row_norms = np.asarray(chunk.labels), np.asarray(chunk.row_norms)
    total = np.zeros(whole.shape)
    for part, wide in _blocks(chunk.rows, len(whole)):
        residual = residuals_of(
            scaled(_products(wide, whole), grid_step),
            labels[part],
            row_norms[part],
            None if kept is None else kept[part],
            **bounds,
        )
        residual = _of_users(residual, wide, chunk.users, part, clip)
        total += _transposed_product(wide, residual)
    return total


def root_curvatures_of(
    chunk: Chunk, whole: Float64[np.ndarray, "m c"], grid_step: float, loss: Loss
) -> Float64[np.ndarray, "b m"]:
    """Return ``sqrt(p (1 - p))``, bounded."""
    with np.errstate(all="ignore"):
        weights = [
            losses.curvatures(loss, scaled(_products(wide, whole), grid_step))
            for _, wide in _blocks(chunk.rows, len(whole))
        ]
        roots: Float64[np.ndarray, "b m"]
        roots = bounded_roots(np.concatenate(weights), loss)
        return roots


def products_of(
    rows: Float32[np.ndarray, "b c"],
    narrow: Float64[np.ndarray, "b m"],
    coef: Float64[np.ndarray, "m c"],
) -> tuple[Float64[np.ndarray, "m c"], Float64[np.ndarray, "b m"]]:
    """Return ``narrow^T rows`` and ``rows / 32 coef^T``: for ``devices`` to check."""
    sums, scores = np.zeros(coef.shape), np.empty(narrow.shape)
    for part, wide in _blocks(rows, len(coef)):
        scores[part] = _products(np.floor(wide / 32.0), coef)
        sums += _transposed_product(wide, narrow[part])
    return sums, scores


@lru_cache(maxsize=1)
def rows_are_alike() -> bool:
    """Return whether scores have the same residuals at every place of a block."""
    numbers = np.arange(10 * _LEAST_ROWS, dtype=np.float64).reshape(-1, 10)
    scores, none = numbers * 0.618034 % 1.0 * 64.0 - 32.0, np.full((_LEAST_ROWS, 1), -1)
    moved = [
        _products(np.roll(scores, place, axis=0), np.eye(10)).astype(np.float32)
        for place in range(_LEAST_ROWS)
    ]
    return all(
        np.array_equal(
            losses.residuals(loss, block, none),
            np.roll(losses.residuals(loss, moved[0], none), place, axis=0),
        )
        for loss in get_args(Loss)
        for place, block in enumerate(moved)
    )


def _blocks(
    rows: Float32[Array | np.ndarray, "b c"], n_outputs: int
) -> Iterator[tuple[slice, Float64[np.ndarray, "r c"]]]:
    """Yield parts of a chunk, of one size, and their rows in float64, in one place.

    The more outputs, the longer a block is multiplied, and the less its place matters.
    """
    n_rows = min(max(_LEAST_ROWS, 1 << (8 * n_outputs).bit_length() - 1), CHUNK_ROWS)
    blocks = np.asarray(rows).reshape(-1, n_rows, rows.shape[1])  # whole ones alone
    wide = np.empty(blocks.shape[1:])
    for place, block in enumerate(blocks):
        wide[:] = block
        yield slice(place * n_rows, (place + 1) * n_rows), wide


def _of_users(
    narrow: Float64[np.ndarray, "r m"],
    wide: Float64[np.ndarray, "r c"],
    users: Any,
    part: slice,
    clip: SumClip | None,
) -> Float64[np.ndarray, "r m"]:
    """Return factors of the rows, such that sums of users are clipped."""
    if clip is None:
        return narrow
    products = inner_products(wide, clip.block)
    return np.asarray(clip_users(narrow, products, np.asarray(users)[part], clip))


def _products(
    wide: Float64[np.ndarray, "r c"], whole: Float64[np.ndarray, "m c"]
) -> Float64[np.ndarray, "r m"]:
    """Return ``wide whole^T``, an output after the other in memory."""
    batches, products = _batches(wide, len(whole)), np.empty((len(whole), len(wide)))
    by_batches = products.reshape(len(whole), len(batches), -1).swapaxes(0, 1)
    np.matmul(whole, batches.mT, out=by_batches)
    return products.T


def _transposed_product(
    wide: Float64[np.ndarray, "r c"], narrow: Float64[np.ndarray, "r m"]
) -> Float64[np.ndarray, "m c"]:
    """Return ``narrow^T wide``, from columns in one piece each."""
    batches, columns = _batches(wide, narrow.shape[1]), np.ascontiguousarray(narrow.T)
    parts = columns.reshape(len(columns), len(batches), -1).swapaxes(0, 1) @ batches
    return parts[0] if len(parts) == 1 else np.asarray(parts.sum(axis=0))


def _batches(
    wide: Float64[np.ndarray, "r c"], n_outputs: int
) -> Float64[np.ndarray, "p q c"]:
    """Return the rows of a block in batches, or in one where that is as fast."""
    n_rows, n_columns = wide.shape
    terms = n_columns * n_outputs
    fits = _BATCH_ROWS * terms <= _BATCH_TERMS < n_rows * terms
    if fits and n_outputs <= _FEW_OUTPUTS:
        return wide.reshape(-1, _BATCH_ROWS, n_columns)
    return wide[None]
