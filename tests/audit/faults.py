"""Faults that published code had, planted for the audits to find."""

import jax.numpy as jnp
import numpy as np

from privfeat.core.bounds.grid import grid_step
from privfeat.core.noise import draws
from tests.planting import plant_clip


def halve_noise(monkeypatch):
    genuine = draws.gaussian
    monkeypatch.setattr(
        draws, "gaussian", lambda key, shape, stddev: genuine(key, shape, stddev / 2)
    )


def repeat_noise(monkeypatch):
    """Give every class the same noise vector."""
    genuine = draws.gaussian

    def repeated(key, shape, stddev):
        row = genuine(key, shape[1:], stddev)
        return np.broadcast_to(row, shape).copy()

    monkeypatch.setattr(draws, "gaussian", repeated)


def drop_clip(monkeypatch):
    def unclipped(features, *, clip_norm, **_):
        whole = np.trunc(np.asarray(features, np.float64) / grid_step(clip_norm))
        return jnp.asarray(whole.astype(np.float32))

    plant_clip(monkeypatch, unclipped)
