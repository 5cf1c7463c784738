"""What a row becomes: scaled, centred, bounded; each by itself."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from privfeat._types import RowScaling
from privfeat.core.bounds.grid import grid_step
from privfeat.core.bounds.rows import ClippedRows, clip_rows
from privfeat.core.sums.calls import by_chunks

_PUBLIC = ("row_scaling", "clip_norm", "intercept_scaling", "private")


def wide_rows(rows: NDArray[np.floating], n_rows: int) -> NDArray[np.float64]:
    """Return rows as float64, filled up with zeros to so many.

    One record of float64 makes all of an array float64. A program for another type
    could add squares in another order, and a device take short numbers for zero: so
    the host converts all of them, and one program reads them. They begin where XLA
    need not copy them.
    """
    size, line = n_rows * rows.shape[1], 8  # a line of memory holds 8 numbers
    memory = np.empty(size + line)
    start = -memory.ctypes.data // memory.itemsize % line
    wide = memory[start : start + size].reshape(n_rows, rows.shape[1])
    wide[: len(rows)] = rows
    wide[len(rows) :] = 0.0
    return wide


@partial(jax.jit, static_argnames="row_scaling")
def shifted_rows(features: Array, center: Array, row_scaling: RowScaling) -> Array:
    """Return what `_shifted_rows` does, a chunk at a time."""
    shifted = partial(_shifted_rows, center=center, row_scaling=row_scaling)
    rows: Array = by_chunks(shifted, features)
    return rows


def _shifted_rows(features: Array, center: Array, row_scaling: RowScaling) -> Array:
    """Return each row, scaled to unit norm for ``"unit"``, minus ``center``.

    What is compiled with the clip could be computed twice, and round differently.
    """
    rows = features
    if row_scaling == "unit":
        largest = jnp.max(jnp.abs(rows), axis=1, keepdims=True, initial=0.0)
        _, power = jnp.frexp(jnp.clip(largest, 2.0**-1000, 2.0**1000))
        scale = jnp.ldexp(1.0, -power)  # a power of two: it rounds nothing
        squares = jnp.sum((rows * scale) ** 2, axis=1, keepdims=True)
        filled = squares != 0.0  # NaN stays what it is
        rows = jnp.where(filled, rows, 0.0) * scale
        rows *= 1.0 / jnp.sqrt(jnp.where(filled, squares, 1.0))
    return rows - center[None, :]


@partial(jax.jit, static_argnames=_PUBLIC)
def bounded_rows(features: Array, kept: Array, **public: Any) -> ClippedRows:
    """Return bounded rows with at least their norms, and which are finite.

    A chunk at a time, so that a row is bounded alike in calls of any size.
    """
    found: ClippedRows = by_chunks(partial(_bounded_rows, **public), features, kept)
    return found


def _bounded_rows(
    features: Array,
    kept: Array,
    *,
    row_scaling: RowScaling,
    clip_norm: float,
    intercept_scaling: float | None,
    private: bool,
) -> ClippedRows:
    """Return bounded rows with at least their norms, and which are finite.

    Without privacy in feature units; ``"clip"`` clips nothing then. Slots that are not
    kept are empty: they have no constant coordinate either.
    """
    if private or row_scaling == "unit":
        rows, norms, finite = clip_rows(
            features,
            clip_norm=clip_norm,
            row_scaling=row_scaling,
            intercept_scaling=intercept_scaling,
        )
        if not private:
            rows = rows * jnp.float32(grid_step(clip_norm))
    else:
        rows = features.astype(jnp.float32)
        finite = jnp.all(jnp.isfinite(features), axis=1)
        norms = jnp.full(len(rows), jnp.inf)  # clips nothing, and is not used
        if intercept_scaling is not None:
            constant = jnp.full((len(rows), 1), intercept_scaling, jnp.float32)
            rows = jnp.concatenate([rows, constant], axis=1)
    rows = jnp.where(kept[:, None], rows, jnp.float32(0.0))
    return ClippedRows(rows, jnp.where(kept, norms, 0.0), finite)
