"""Random bits for noise: the block cipher Threefish-256 in counter mode, by JAX.

JAX's own generator has keys of 64 bits: two draws in ``2**32`` share one. A key of
Threefish has 256 bits, and a block of four words never repeats under one key.

References
----------
.. [1] Ferguson et al. The Skein Hash Function Family, version 1.3. 2010. Section 3.3.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt64

NoiseKey = UInt64[np.ndarray, " 4"]
_Block = tuple[Array, Array, Array, Array]

# [1]_, Table 4, for four words, and the constant C240 of the key schedule.
_ROTATIONS = (
    (14, 16),
    (52, 57),
    (23, 40),
    (5, 37),
    (25, 33),
    (46, 12),
    (58, 22),
    (32, 32),
)
_PARITY = 0x1BD11BDAA9FC1A22
_ROUNDS = 72
# Sizes have so many leading bits, and zeros: few to compile, near to what was asked.
_SIZE_BITS = 4
_FEWEST_BLOCKS = 16
_PIECE_BLOCKS = 2**12


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
        pieces = [np.asarray(_piece(checked(key), np.uint64(s))) for s in starts]
    return np.concatenate([np.empty(0, np.uint64), *pieces])[:n_words]


def checked(key: NoiseKey) -> NoiseKey:
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


def blocks(
    key: UInt64[Array, " 4"], n_blocks: int, start: UInt64[Array, ""] | int = 0
) -> _Block:
    """Return so many numbers from ``start`` on, encrypted: four arrays of words.

    To be called inside ``jit``.

    Notes
    -----
    Threefish-256 with all 72 rounds and a tweak of zero ([1]_, Section 3.3).
    """
    parity = key[0] ^ key[1] ^ key[2] ^ key[3] ^ jnp.uint64(_PARITY)
    schedule = jnp.append(key, parity)
    numbers = jnp.arange(n_blocks, dtype=jnp.uint64) + jnp.uint64(start)
    zeros = jnp.zeros_like(numbers)

    def inject(block: _Block, turn: Array) -> _Block:
        w, x, y, z = (
            word + schedule[(turn + place) % 5] for place, word in enumerate(block)
        )
        return w, x, y, z + jnp.uint64(turn)

    def eight_rounds(pair: Array, block: _Block) -> _Block:
        block = inject(_mixed(block, _ROTATIONS[:4]), 2 * pair + 1)
        return inject(_mixed(block, _ROTATIONS[4:]), 2 * pair + 2)

    first = inject((numbers, zeros, zeros, zeros), jnp.asarray(0))
    words: _Block = jax.lax.fori_loop(0, _ROUNDS // 8, eight_rounds, first)
    return words


def _mixed(block: _Block, rotations: tuple[tuple[int, int], ...]) -> _Block:
    w, x, y, z = block
    for left, right in rotations:
        w, y = w + x, y + z
        x, z = _rotated(x, left) ^ w, _rotated(z, right) ^ y
        x, z = z, x  # the permutation of words
    return w, x, y, z


def _rotated(word: Array, by: int) -> Array:
    rotated: Array = (word << jnp.uint64(by)) | (word >> jnp.uint64(64 - by))
    return rotated
