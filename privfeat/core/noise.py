"""The only place where noise is drawn in floating point; ``discrete`` has the other."""

import math
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Bool, Float, Int, Key

_BLOCK = 2**14  # coins that are tossed together


def gaussian(
    key: Key[Array, ""], shape: tuple[int, ...], stddev: float
) -> Float[np.ndarray, "..."]:
    """Return independent draws from ``N(0, stddev^2)`` in float64.

    By inversion, a sign and a uniform number of 127 bits below 1/2, so that the law is
    the normal one up to 13 standard deviations. The 52 bits of ``jax.random.normal``
    end at 8: outputs beyond, which a neighbour can have and this data set cannot, would
    weigh more than a delta of 1e-10 at an epsilon of 13. With 13 they weigh less than a
    thousandth of any delta for noise multipliers of at least 0.18; below, epsilon is
    above 20, where ``fit`` warns.

    Continuous noise in floating point has known weaknesses in its low bits (Mironov
    2012; Haney et al. 2022, arXiv:2207.13793), which the default arithmetic does not
    protect against; ``exact`` does.
    """
    with jax.enable_x64(True):
        return np.asarray(_gaussian(key, shape, stddev))


@partial(jax.jit, static_argnames="shape")
def _gaussian(
    key: Key[Array, ""], shape: tuple[int, ...], stddev: float
) -> Float[Array, "..."]:
    first, second = jax.random.split(key)
    high = jax.random.bits(first, shape, jnp.uint64)
    low = jax.random.bits(second, shape, jnp.uint64).astype(jnp.float64)
    uniform = (high >> 1).astype(jnp.float64) + (low + 0.5) * 2.0**-64
    magnitude = -stddev * ndtri(uniform * 2.0**-64)
    return jnp.where((high & 1) == 1, magnitude, -magnitude)


def symmetric_gaussian(
    key: Key[Array, ""], size: int, stddev: float
) -> Float[np.ndarray, "d d"]:
    """Return a symmetric matrix of noise for a statistic bounded in Frobenius norm.

    Notes
    -----
    The map from a symmetric matrix to (diagonal, ``sqrt(2)`` times the upper triangle)
    is an isometry, so noise ``N(0, stddev^2)`` on those coordinates makes a Gaussian
    release: stddev on the diagonal and ``stddev / sqrt(2)`` off it.
    """
    # size (size + 1) / 2 draws, as a matrix: XLA fills a vector four times as slowly
    half = (size // 2, size + 1) if size % 2 == 0 else ((size + 1) // 2, size)
    draws = gaussian(key, half, stddev * math.sqrt(0.5))
    noise: Float[np.ndarray, "d d"] = np.take(draws, _places_in_triangle(size))
    noise[np.diag_indices(size)] *= math.sqrt(2.0)
    return noise


@lru_cache(maxsize=1)
def _places_in_triangle(size: int) -> Int[np.ndarray, "d d"]:
    """Return which draw stands at an entry and at its mirror image."""
    places = np.zeros((size, size), np.intp)
    upper = np.triu_indices(size)
    places[upper] = places.T[upper] = np.arange(len(upper[0]))
    return places


def bernoulli(
    key: Key[Array, ""], n_samples: int, probability: float
) -> Bool[np.ndarray, " n"]:
    """Return an independent inclusion mask: Poisson sampling of records.

    Drawn a block at a time, each with its own key: code compiled for the number of
    records would be kept in a file.
    """
    with jax.enable_x64(True):
        blocks = [
            jax.random.uniform(jax.random.fold_in(key, block), (_BLOCK,), jnp.float64)
            for block in range(-(-n_samples // _BLOCK))
        ]
    draws = np.concatenate([np.empty(0), *blocks])[:n_samples]
    return np.asarray(draws < probability)


def uniform(key: Key[Array, ""]) -> float:
    """Return one draw from [0, 1), a multiple of ``2**-52``."""
    with jax.enable_x64(True):
        return float(jax.random.uniform(key, (), jnp.float64))
