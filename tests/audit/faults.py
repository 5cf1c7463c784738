"""Faults that published code had, planted for the audits to find."""

import jax.numpy as jnp
import numpy as np

from privfeat.core.bounds.grid import grid_step
from privfeat.core.bounds.rows import ClippedRows


def halve_noise(plant):
    genuine = plant.genuine("Gaussian noise")
    plant("Gaussian noise", lambda key, shape, stddev: genuine(key, shape, stddev / 2))


def repeat_noise(plant):
    """Give every class the same noise vector."""
    genuine = plant.genuine("Gaussian noise")

    def repeated(key, shape, stddev):
        row = genuine(key, shape[1:], stddev)
        return np.broadcast_to(row, shape).copy()

    plant("Gaussian noise", repeated)


def drop_clip(plant):
    def unclipped(features, *, clip_norm, **_):
        whole = np.trunc(np.asarray(features, np.float64) / grid_step(clip_norm))
        rows = jnp.asarray(whole.astype(np.float32))
        return ClippedRows(
            rows, jnp.full(len(rows), clip_norm), jnp.isfinite(rows[:, 0])
        )

    plant("clip of rows", unclipped)
