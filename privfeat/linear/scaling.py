"""What a row becomes: scaled, centred, bounded; each by itself."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from privfeat._types import RowScaling
from privfeat.core.bounds.clipping import clip_rows
from privfeat.core.bounds.grid import grid_step
from privfeat.estimation.shifting import shifted_rows

_PUBLIC = ("shifted", "row_scaling", "clip_norm", "intercept_scaling", "private")


@partial(jax.jit, static_argnames=_PUBLIC)
def bounded_rows(
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
