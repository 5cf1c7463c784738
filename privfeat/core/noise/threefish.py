"""Random bits for noise: the block cipher Threefish-256 in counter mode, by JAX.

JAX's own generator has keys of 64 bits: among ``2**32`` draws, two may share one. A key
of Threefish has 256 bits, and a block of four words never repeats under one key. That
nobody can tell the blocks from random bits is assumed, as of every cipher.

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
