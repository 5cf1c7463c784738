"""The only place where noise is drawn in floating point; ``discrete`` has the other.

Every draw has a fresh key of 256 bits (`KeyStream.draw_noise_key`). Of ``q`` draws
by any number of fits, two share a key with probability below ``q**2 / 2**257``. That is
below ``2e-39`` for ``2**64`` draws: ``2**32`` fits of ``2**32`` each, where a stream of
keys ends. Under one key no block of 256 bits comes twice.
"""

import math
from decimal import Decimal, localcontext
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Bool, Float, Int, UInt64

from privfeat.core.accounting.run_count import EIGHTY_DIGITS, RunCount
from privfeat.core.noise.threefish import NoiseKey, blocks

# Sizes are rounded up to so many leading bits: few are compiled, few words wasted.
_SIZE_BITS = 4
_FEWEST_BLOCKS = 16
_PIECE_BLOCKS = 2**12


def gaussian(
    key: NoiseKey, shape: tuple[int, ...], stddev: float
) -> Float[np.ndarray, "..."]:
    """Return independent draws from ``N(0, stddev^2)`` in float64.

    Drawn by inversion of a sign and a uniform number of 127 bits below 1/2: the law is
    normal up to 13.1 standard deviations, and ends there. A neighbour may produce
    values that this data set cannot. A normal law that is cut there is within a total
    variation of ``2**-128`` of the whole one, so ``n`` numbers add at most ``(1 +
    exp(epsilon)) 3e-39 n`` to delta. For 1e9 numbers that is 2e-21 at an epsilon of 20,
    above which ``fit`` warns (``weak_choices``). The slack of ``conversions`` covers it
    up to 27 at a delta of 1e-10, and 38 at 1e-5; for larger ones nothing does: at an
    epsilon of 76 the cut alone takes a delta of 1e-5. With 52 bits, as in
    ``jax.random.normal``, the end would be at 8, and the variation 2e-16 for each.

    The cut law is continuous. What is drawn are some numbers of float64: this has known
    weaknesses in the low bits (Mironov 2012; Haney et al. 2022, arXiv:2207.13793),
    which the default arithmetic does not protect against; ``exact`` does.
    """
    size = math.prod(shape)
    with jax.enable_x64(True):
        # a number takes two words
        draws = np.asarray(_gaussian(_checked(key), n_blocks_for(2 * size)))
    return np.asarray(draws[:size].reshape(shape) * stddev)


@partial(jax.jit, static_argnames="n_blocks")
def _gaussian(key: UInt64[Array, " 4"], n_blocks: int) -> Float[Array, " n"]:
    return _normal(*jnp.concatenate(blocks(key, n_blocks)).reshape(2, -1))


def _normal(high: UInt64[Array, " n"], low: UInt64[Array, " n"]) -> Float[Array, " n"]:
    """Return the standard normal number of each sign and 127 bits."""
    uniform = (high >> 1).astype(jnp.float64)
    uniform += (low.astype(jnp.float64) + 0.5) * 2.0**-64
    magnitude = -ndtri(uniform * 2.0**-64)
    return jnp.where((high & 1) == 1, magnitude, -magnitude)


def symmetric_gaussian(
    key: NoiseKey, size: int, stddev: float
) -> Float[np.ndarray, "d d"]:
    """Return a symmetric matrix of noise for a statistic bounded in Frobenius norm.

    Notes
    -----
    The map from a symmetric matrix to (diagonal, ``sqrt(2)`` times the upper triangle)
    is an isometry, so noise ``N(0, stddev^2)`` on those coordinates makes a Gaussian
    release: stddev on the diagonal and ``stddev / sqrt(2)`` off it.
    """
    draws = gaussian(key, (size * (size + 1) // 2,), stddev * math.sqrt(0.5))
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
    key: NoiseKey, n_samples: int, probability: float
) -> Bool[np.ndarray, " n"]:
    """Return an independent inclusion mask: Poisson sampling of records.

    The probability is rounded down to a multiple of ``2**-52``: never above what is
    accounted.
    """
    rounded = math.floor(probability * 2.0**52) * 2.0**-52
    return np.asarray(_uniform(key, n_samples) < rounded)


def number_of_runs(key: NoiseKey, runs: RunCount) -> int:
    """Return one draw of ``runs``, by inversion of a uniform of 256 bits. Sensitive."""
    bits = int.from_bytes(words_of(key, 4).astype(">u8").tobytes(), "big")
    with localcontext(EIGHTY_DIGITS):
        return runs.count_at(Decimal(bits) / 2**256)


def _uniform(key: NoiseKey, size: int) -> Float[np.ndarray, " n"]:
    return (words_of(key, size) >> 12).astype(np.float64) * 2.0**-52


def n_blocks_for(n_words: int) -> int:
    """Return how many blocks hold so many words, rounded up to four leading bits."""
    n_blocks = max(_FEWEST_BLOCKS, -(-n_words // 4))
    step = 1 << (n_blocks.bit_length() - _SIZE_BITS)
    return -(-n_blocks // step) * step


def words_of(key: NoiseKey, n_words: int) -> UInt64[np.ndarray, " n"]:
    """Return ``n_words`` words of 64 bits under ``key``.

    In pieces of one shape: how many coins are tossed for records is private, and code
    compiled for that number would be kept in a file.
    """
    with jax.enable_x64(True):
        starts = range(0, -(-n_words // 4), _PIECE_BLOCKS)
        pieces = [np.asarray(_piece(_checked(key), np.uint64(s))) for s in starts]
    return np.concatenate([np.empty(0, np.uint64), *pieces])[:n_words]


def _checked(key: NoiseKey) -> NoiseKey:
    """Return ``key``; raise TypeError unless it has 256 bits."""
    if not (isinstance(key, np.ndarray) and key.shape == (4,) and key.dtype == "u8"):
        raise TypeError(
            f"key must be four words of 64 bits, got {type(key).__name__}. Call "
            "KeyStream.draw_noise_key()."
        )
    return key


@jax.jit
def _piece(key: UInt64[Array, " 4"], start: UInt64[Array, ""]) -> UInt64[Array, " n"]:
    return jnp.concatenate(blocks(key, _PIECE_BLOCKS, start))
