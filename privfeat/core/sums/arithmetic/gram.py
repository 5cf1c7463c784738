"""Rows that are multiplied with themselves, and their product on an accelerator.

Exact as ``statistics`` says. On a CPU NumPy multiplies the rows of several chunks.
"""

from collections.abc import Iterable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Float64, Num

from privfeat.core.bounds.clipping import SHRINK
from privfeat.core.bounds.grid import grid_step
from privfeat.core.sums.arithmetic import slices
from privfeat.core.sums.arithmetic.kernels import EXACT
from privfeat.core.sums.records import CHUNK_ROWS, Chunk

# Rows that are multiplied with themselves at once: so many sum to at most 2**53, and
# take so much memory.
_JOINED_ROWS = 2**13
_JOINED_BYTES = 2**28


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


def joined(
    parts: Iterable[Float[Array, "b c"]], n_columns: int
) -> Iterator[Float64[np.ndarray, "r c"]]:
    """Yield the rows of chunks, `most_rows` at once, in one place."""
    block, filled = np.empty((most_rows(n_columns), n_columns)), 0
    for part in parts:
        block[filled : filled + len(part)] = part
        filled += len(part)
        if filled == len(block):
            yield block
            filled = 0
    if filled:
        yield block[:filled]


def most_rows(n_columns: int) -> int:
    """Return how many rows are multiplied with themselves at once: up to eight chunks.

    One product of eight takes three quarters of the time of eight products.
    """
    n_chunks = _JOINED_BYTES // (8 * CHUNK_ROWS * n_columns)
    return min(CHUNK_ROWS * max(n_chunks, 1), _JOINED_ROWS)


@partial(jax.jit, static_argnames="sliced")
def gram_product_of(
    rows: Float[Array, "b c"], sliced: bool = False
) -> Num[Array, "c c"]:
    """Return ``rows^T rows``."""
    if sliced:
        return slices.gram(rows)
    wide = rows.astype(jnp.float64)
    return jnp.matmul(wide.T, wide, precision=EXACT)
