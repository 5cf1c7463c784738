"""What a row becomes: scaled, centred, bounded; each by itself."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from privfeat._types import RowScaling
from privfeat.core.bounds.clipping import clip_rows
from privfeat.core.bounds.grid import grid_step
from privfeat.core.sums.records import by_chunks


def scaled_rows(
    features: NDArray[np.floating], center: NDArray[np.float64], row_scaling: RowScaling
) -> NDArray[np.float64]:
    """Return rows as a model sees them, for predictions: not clipped, no constant."""
    rows = shifted_rows(features, center, row_scaling)
    return np.asarray(unit_rows(rows) if row_scaling == "unit" else rows)


def shifted_rows(
    features: Any, center: Any, row_scaling: RowScaling, xp: Any = np
) -> Any:
    """Return each row, scaled to unit norm for ``"unit"``, minus ``center``.

    In float64, by the array library ``xp``.
    """
    rows = features.astype(xp.float64)
    return (unit_rows(rows, xp) if row_scaling == "unit" else rows) - center[None, :]


def unit_rows(rows: Any, xp: Any = np) -> Any:
    """Return rows divided by their norms; zero rows stay zero."""
    largest = xp.max(xp.abs(rows), axis=1, keepdims=True, initial=0.0)
    rows = rows / xp.where(largest > 0.0, largest, 1.0)  # no overflow of squares
    norms = xp.linalg.norm(rows, axis=1, keepdims=True)
    return rows / xp.where(norms > 0.0, norms, 1.0)


_PUBLIC = ("shifted", "row_scaling", "clip_norm", "intercept_scaling", "private")


@partial(jax.jit, static_argnames=_PUBLIC)
def bounded_rows(
    features: Array, center: Array, kept: Array, **public: Any
) -> tuple[Array, Array, Array]:
    """Return bounded rows, their norms in feature units, and which chunks are finite.

    A chunk at a time, so that a row is bounded alike in calls of any size.
    """

    def bounded(features: Array, kept: Array) -> tuple[Array, Array, Array]:
        return _bounded_rows(features, center, kept, **public)

    made: tuple[Array, Array, Array] = by_chunks(bounded, features, kept)
    return made


def _bounded_rows(
    features: Array,
    center: Array,
    kept: Array,
    *,
    shifted: bool,
    row_scaling: RowScaling,
    clip_norm: float,
    intercept_scaling: float | None,
    private: bool,
) -> tuple[Array, Array, Array]:
    """Return bounded rows, their norms in feature units, and if all was finite.

    Slots that are not kept are empty: they have no constant coordinate either.
    """
    finite = jnp.all(jnp.isfinite(features))
    step = grid_step(clip_norm)
    if shifted:
        features = shifted_rows(features, center, row_scaling, jnp)
    elif features.dtype == jnp.float16:
        features = features.astype(jnp.float32)
    if private or row_scaling == "unit":
        rows = clip_rows(
            features,
            clip_norm=clip_norm,
            row_scaling=row_scaling,
            intercept_scaling=intercept_scaling,
        )
        if not private:
            rows, step = rows * jnp.float32(step), 1.0
    else:
        rows, step = features.astype(jnp.float32), 1.0
        if intercept_scaling is not None:
            constant = jnp.full((len(rows), 1), intercept_scaling, jnp.float32)
            rows = jnp.concatenate([rows, constant], axis=1)
    rows = jnp.where(kept[:, None], rows, jnp.float32(0.0))
    # a float64 norm can round down, the clip factor allows for it
    return rows, jnp.linalg.norm(rows.astype(jnp.float64), axis=1) * step, finite
