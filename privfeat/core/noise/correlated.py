"""Noise and turns of releases under a `Banded` strategy, from step to step."""

from collections import deque

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy.typing import NDArray

from privfeat.core.bounds.strategy import Banded
from privfeat.core.noise import draws
from privfeat.core.noise.keys import KeyStream
from privfeat.exceptions import PrivacyError


class CorrelatedNoise:
    """Makes the noise of a query out of independent noise, and says whose turn it is.

    All that it holds is secret: who knows the noise of a release knows its exact sum.
    It is kept nowhere, since a fit that goes on begins a stretch (`strategy`).

    Attributes
    ----------
    strategy : Banded
    """

    def __init__(self, strategy: Banded) -> None:
        self.strategy = strategy
        self.restart()

    def restart(self) -> None:
        """Begin a stretch: forget noise and groups, which are drawn anew."""
        length = self.strategy.bands - 1
        self._past: deque[NDArray[np.float64]] = deque(maxlen=length)
        self._powers: deque[float] = deque(maxlen=length)
        self._variance = 0.0
        self._groups: Int64[np.ndarray, " n"] | None = None
        self._sampled = -1  # the release whose records were sampled last

    @property
    def stddev(self) -> float:
        """Stddev of the noise of the last release, over that of independent noise."""
        return float(np.sqrt(self._variance))

    def next(self, fresh: Float64[np.ndarray, "..."]) -> Float64[np.ndarray, "..."]:
        """Return the noise of the next release, of independent noise drawn for it.

        Another shape than before is a PrivacyError.
        """
        if self._past and self._past[0].shape != fresh.shape:
            raise PrivacyError("releases with correlated noise must have one shape.")
        first, *rest = self.strategy.coefficients
        noise, power = fresh.copy(), 0.0 if self._past else 1.0
        for coefficient, past, of_past in zip(
            rest, self._past, self._powers, strict=False
        ):
            noise -= coefficient * past
            power -= coefficient * of_past
        noise /= first
        self._past.appendleft(noise)
        self._powers.appendleft(power / first)
        self._variance += (power / first) ** 2
        return noise.copy()  # what is released is added to it

    def whose_turn(self, keys: KeyStream, n: int, drawn: int) -> Bool[np.ndarray, " n"]:
        """Return which of ``n`` records may be in release number ``drawn``.

        Groups are drawn at the first call of a stretch, for each record by itself.
        PrivacyError for another number of records than then, or a second call for one
        release: records of two parts would share their groups.
        """
        bands = self.strategy.bands
        if drawn == self._sampled:
            raise PrivacyError("a release must sample all records at once.")
        self._sampled = drawn
        if self._groups is None:
            words = draws.words_of(keys.draw_noise_key(), n)
            self._groups = (words % np.uint64(bands)).astype(np.int64)
        if len(self._groups) != n:
            raise PrivacyError("all releases must sample the same records.")
        return np.asarray(self._groups == drawn % bands)
