"""Faults that published code had, planted for the audits to find."""

import jax.numpy as jnp
import numpy as np

from privfeat.core import noise
from privfeat.core.clipping import grid_step
from privfeat.linear import _rows


def halve_noise(monkeypatch):
    genuine = noise.gaussian
    monkeypatch.setattr(
        noise, "gaussian", lambda key, shape, stddev: genuine(key, shape, stddev / 2)
    )


def repeat_noise(monkeypatch):
    """Give every class the same noise vector."""
    genuine = noise.gaussian

    def repeated(key, shape, stddev):
        row = genuine(key, shape[1:], stddev)
        return np.broadcast_to(row, shape).copy()

    monkeypatch.setattr(noise, "gaussian", repeated)


def drop_clip(monkeypatch):
    def unclipped(features, *, clip_norm, **_):
        whole = np.trunc(np.asarray(features, np.float64) / grid_step(clip_norm))
        return jnp.asarray(whole.astype(np.float32))

    monkeypatch.setattr(_rows, "clip_rows", unclipped)
    # Not compiled: else the right one is found in the cache, or this one left there.
    monkeypatch.setattr(_rows, "_bounded", _rows._bounded.__wrapped__)
