"""Rows that are multiplied with themselves, and their product.

Exact as ``statistics`` says. On a CPU NumPy multiplies the rows of several chunks.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial, wraps
from operator import attrgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64, Int, Num

from privfeat.core.bounds.clipping import SHRINK
from privfeat.core.bounds.grid import grid_step
from privfeat.core.bounds.user_clips import SumClip
from privfeat.core.bounds.users import clip_users_rows
from privfeat.core.sums.arithmetic import slices
from privfeat.core.sums.arithmetic.kernels import EXACT
from privfeat.core.sums.calls import by_chunks, rows_of_call
from privfeat.core.sums.records import CHUNK_ROWS, Chunk, Rows

# Rows that are multiplied with themselves at once: so many sum to at most 2**53, and
# take so much memory.
_JOINED_ROWS = 2**13
_JOINED_BYTES = 2**28


@partial(jax.jit, static_argnames=("step", "clip_norm"))
def reclipped_rows_of(
    chunk: Chunk, step: float, clip_norm: float
) -> Float64[Array, "b c"]:
    """Return rows of norm at most ``clip_norm``, in steps of the grid of that norm."""
    norms = jnp.maximum(chunk.row_norms, clip_norm)
    factor = clip_norm / norms * (SHRINK * step / grid_step(clip_norm))
    return jnp.trunc(chunk.rows.astype(jnp.float64) * factor[:, None])


def factors(
    rows: Rows, clip_norm: float | None = None
) -> tuple[Callable[[Any], Any], float]:
    """Return what makes the rows of a chunk that are multiplied, and their step.

    ``clip_norm`` clips each further, and then what the rows of a user sum to is clipped
    where ``rows.users`` says so.
    """
    own_step = step = rows.step or 1.0
    made: Callable[[Any], Any] = attrgetter("rows")
    users = rows.users
    if rows.step is not None and clip_norm is not None:
        clip_norm = float(clip_norm)
        own_step = grid_step(clip_norm)
        reclipped = partial(reclipped_rows_of, step=step, clip_norm=clip_norm)
        made = with_64_bits(reclipped)
        users = users and replace(users, row_norm=clip_norm)
    if users is None:
        return made, own_step
    clip = users.of_grams(own_step, rows.n_columns)
    return lambda chunk: clipped_rows(made(chunk), chunk.users, clip), own_step


def clipped_rows(
    rows: Float[Array | np.ndarray, "b c"],
    users: Int[Array | np.ndarray, " b"],
    clip: SumClip,
) -> Float64[Any, "b c"]:
    """Return rows whose outer products sum to no more than a limit over a user."""
    if jax.default_backend() == "cpu":
        wide = np.asarray(rows).astype(np.float64)
        return np.asarray(clip_users_rows(wide, np.asarray(users), clip))
    return with_64_bits(_clipped_rows)(rows, users, clip)


@partial(jax.jit, static_argnames="clip")
def _clipped_rows(
    rows: Float[Array, "b c"], users: Int[Array, " b"], clip: SumClip
) -> Float64[Array, "b c"]:
    clipped: Float64[Array, "b c"] = by_chunks(
        partial(clip_users_rows, clip=clip), rows.astype(jnp.float64), users
    )
    return clipped


@partial(jax.jit, static_argnames="private")
def weighted_rows(
    rows: Float[Array, "b c"], root: Float64[Array, " b"], private: bool
) -> Float64[Array, "b c"]:
    """Return rows times ``root <= 1/2``, in half steps of the grid of the rows.

    That is, whole numbers: those of the rows times ``2 root``.
    """
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


def gram_of(
    rows: Float[Array | np.ndarray, "b c"], by_slices: bool = False
) -> Num[Any, "c c"]:
    """Return ``rows^T rows`` of a call; on a CPU of up to `most_rows`.

    On a CPU by NumPy, three times as fast as XLA; being exact, the result is the same.
    """
    if jax.default_backend() == "cpu":  # exact either way
        host = np.asarray(rows).astype(np.float64, copy=False)
        return np.asarray(host.T @ host)
    missing = rows_of_call(rows.shape[1]) - len(rows)
    if missing > 0:
        # on the host: code compiled for a number of rows would be kept in a file
        rows = np.pad(np.asarray(rows), ((0, missing), (0, 0)))
    with jax.enable_x64(True):
        return gram_product_of(jnp.asarray(rows), by_slices)


@partial(jax.jit, static_argnames="sliced")
def gram_product_of(
    rows: Float[Array, "b c"], sliced: bool = False
) -> Num[Array, "c c"]:
    """Return ``rows^T rows``."""
    if sliced:
        return slices.gram(rows)
    wide = rows.astype(jnp.float64)
    return jnp.matmul(wide.T, wide, precision=EXACT)


def with_64_bits(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function as called with 64-bit types, in whatever thread."""

    @wraps(function)
    def called(*arguments: Any) -> Any:
        with jax.enable_x64(True):
            return function(*arguments)

    return called
