"""Keys of the noise: operating-system entropy, one key for one draw."""

import hashlib
import os
import secrets

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, UInt64

from privfeat.core.noise.threefish import NoiseKey
from privfeat.core.sums.processes import Team
from privfeat.exceptions import PrivacyError

MAX_DRAWS = 2**32


class KeyStream:
    """A source of keys, each handed out once.

    Parameters
    ----------
    seed : int or None
        None: every key is fresh bits from the operating system's entropy source, so
        nothing that an adversary could guess relates two draws. An integer in ``[0,
        2**64)``: a reproducible stream, for tests and published experiments, **not
        private** against anyone who can guess the seed.
    process : int, default=0
        Number of this process: with one seed each process has other keys.

    Attributes
    ----------
    seeded : bool
        Whether the stream can be reproduced from a seed.

    Notes
    -----
    Two of ``q`` noise keys without a seed, of 256 bits each, are equal with probability
    below ``q**2 / 2**257``, whatever streams they come from, if the bits of the
    operating system are random. A stream ends after ``2**32`` keys.

    JAX keys are built from raw words: with 64-bit types off, ``jax.random.key(2**40)``
    silently equals ``jax.random.key(0)``.
    """

    def __init__(self, seed: int | None, process: int = 0) -> None:
        if seed is not None and not 0 <= seed < 2**64:
            raise ValueError(f"seed must be in [0, 2**64), got {seed!r}.")
        self._seed, self.seeded = seed, seed is not None
        self._process = process
        self._drawn = 0

    @property
    def position(self) -> int:
        """How many keys, or runs of words, were drawn."""
        return self._drawn

    def skip_to(self, position: int) -> None:
        """Go on from a position that a stream of the same seed had reached.

        Backwards is a ValueError: a key would come twice.
        """
        if not position >= self._drawn:
            raise ValueError(
                f"position must be at least {self._drawn}, got {position!r}: a key "
                "would be drawn twice."
            )
        self._drawn = position

    def draw_noise_key(self) -> NoiseKey:
        """Return a key of 256 bits, for one draw of ``draws``."""
        return self.draw_words(4)

    def draw(self) -> Key[Array, ""]:
        """Return a key of 64 bits for ``jax.random``: for all draws but noise.

        They are initial parameters, say, or views of images. Two of ``q`` such keys are
        equal with probability ``q**2 / 2**65``, too often for noise.
        """
        self._count()
        if self._seed is None:
            return key_of(secrets.randbits(64))
        key = jax.random.fold_in(key_of(self._seed), np.uint32(self._drawn))
        return jax.random.fold_in(key, self._process) if self._process else key

    def draw_integer(self) -> int:
        """Return 64 random bits: the seed of another stream, say."""
        high, low = np.asarray(jax.random.key_data(self.draw())).tolist()
        return int(high) << 32 | int(low)

    def draw_words(self, n_words: int) -> UInt64[np.ndarray, " n"]:
        """Return so many words of 64 random bits, drawn for this call alone.

        Without a seed all bits come from the operating system's cryptographic source,
        not from a key of 64 bits that is stretched; with one, from SHAKE-256.
        """
        self._count()
        if self._seed is None:
            content = os.urandom(8 * n_words)
        else:
            name = b"privfeat %d %d" % (self._seed, self._drawn)
            name += b" %d" % self._process if self._process else b""
            content = hashlib.shake_256(name).digest(8 * n_words)
        return np.frombuffer(content, "<u8").astype(np.uint64)

    def _count(self) -> None:
        if not self._drawn < MAX_DRAWS:
            raise PrivacyError("a stream must give at most 2**32 keys. Fit anew.")
        self._drawn += 1


class SharedKeys(KeyStream):
    """A stream of one of several processes, in which ``draw`` is the same for all.

    For what all must draw alike and is no noise, such as initial parameters. Every
    process must call it at the same places. The keys are those of the first process,
    with a seed those of a `KeyStream` of one process. Keys and words of noise remain
    those of the process itself.
    """

    def __init__(self, seed: int | None, team: Team) -> None:
        super().__init__(seed, team.index)
        self._team = team

    def draw(self) -> Key[Array, ""]:
        """Return the key of 64 bits that the first process draws."""
        high, low = np.asarray(jax.random.key_data(super().draw())).tolist()
        own = np.array(high << 32 | low, np.uint64).view(np.int64)
        return key_of(int(self._team.from_first(own, "key").view(np.uint64)))


def key_of(bits: int) -> Key[Array, ""]:
    """Return the key of 64 bits for ``jax.random``, of its generator Threefry.

    ``jax.random.key`` takes the generator that the process has set. Under ``vmap`` that
    called ``rbg`` deals out the bits of the first key by place: what is drawn for one
    record would depend on those before it.
    """
    words = jnp.array([bits >> 32, bits & 0xFFFFFFFF], jnp.uint32)
    key: Key[Array, ""] = jax.random.wrap_key_data(words, impl="threefry2x32")
    return key
