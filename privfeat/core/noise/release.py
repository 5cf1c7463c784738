"""A noisy value, which may leave the core: solvers and estimators work on it."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Release:
    """A statistic after the noise of ``gaussian_mechanism``, with how it was made.

    Attributes
    ----------
    name : str
        Name of the query.
    value : array of float64
        Exact statistic plus Gaussian noise. Public once released; read-only.
    noise_stddev : float
        Standard deviation of the noise, in units of the statistic: of every entry, or,
        for a symmetric matrix, of the diagonal (off it ``noise_stddev / sqrt(2)``).
    symmetric : bool
        Whether ``value`` is a symmetric matrix with symmetric noise.
    """

    name: str
    value: Float[np.ndarray, "..."]
    noise_stddev: float
    symmetric: bool

    def unscaled(self, scale: float, name: str) -> "Release":
        """Return the release of the sum before `ExactSum.scaled`, called ``name``.

        Post-processing: value and noise are divided by ``scale``, > 0.
        """
        value = np.asarray(self.value / scale)
        value.setflags(write=False)
        stddev = self.noise_stddev / scale
        return replace(self, name=name, value=value, noise_stddev=stddev)
