"""What a device is handed at once: one chunk, or several."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Shaped

from privfeat.core.sums.records import CHUNK_ROWS

# Rows of a call, at most: with these, its sums are exact (see ``statistics``).
CALL_ROWS = 2**13
# Memory for the rows of a call, in float64.
_CALL_BYTES = 2**28


def rows_of_call(n_columns: int) -> int:
    """Return how many rows a device is handed at once: a multiple of `CHUNK_ROWS`.

    On a CPU a chunk; elsewhere more, as far as memory allows, since a chunk would keep
    an accelerator waiting. It follows from public facts alone.
    """
    if jax.default_backend() == "cpu":
        return CHUNK_ROWS
    n_chunks = _CALL_BYTES // (8 * CHUNK_ROWS * max(n_columns, 1))
    return CHUNK_ROWS * min(max(n_chunks, 1), CALL_ROWS // CHUNK_ROWS)


def placed(values: Float64[np.ndarray, "..."]) -> Float64[Any, "..."]:
    """Return an array that many calls take: on an accelerator already, if any."""
    if jax.default_backend() == "cpu":
        return values
    with jax.enable_x64(True):
        return jnp.asarray(values)


def by_chunks(function: Callable[..., Any], *arrays: Shaped[Array, "n ..."]) -> Any:
    """Return what a function makes of rows, `CHUNK_ROWS` at a time, inside a trace.

    Compilers order the sums over a row by the shape of the array. In one shape, what is
    made of a row does not depend on the number of rows of a call.
    """
    n_rows = len(arrays[0])
    if n_rows <= CHUNK_ROWS:
        return function(*arrays)
    parts = [part.reshape(-1, CHUNK_ROWS, *part.shape[1:]) for part in arrays]
    made = jax.lax.map(lambda part: function(*part), parts)
    return jax.tree.map(lambda part: part.reshape(-1, *part.shape[2:]), made)
