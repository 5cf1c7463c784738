"""What public rows tell of releases: where a mean, and a signal, is to be expected.

All of it is post-processing of releases with noise of known stddev.
"""

import math

import numpy as np
from jaxtyping import Float

from privfeat.core.noise.release import Release
from privfeat.solvers.spectrum import eigenvectors

# What the evidence for the spectrum must exceed, in units of log likelihood: one more
# number is fitted. Noise alone exceeds it once in 40 times (half a chi square above 4).
_PENALTY = 2.0
_ROUNDS = 10  # of weighted least squares, which converge by a factor a round


def shrunk_towards(
    total: Float[np.ndarray, " d"],
    noise_stddev: float,
    target: Float[np.ndarray, " d"] | None = None,
) -> Float[np.ndarray, " d"]:
    """Return a noisy vector, shrunk towards zero, or towards a part of ``target``.

    Parameters
    ----------
    total : array of shape (d,)
    noise_stddev : float
        Of each entry, >= 0.
    target : array of shape (d,), optional

    Notes
    -----
    What is left of ``total`` beside ``t target`` is multiplied by ``max(0, 1 - d s**2 /
    norm**2)`` (James and Stein 1961). The part ``t``, in [0, 1], is the projection of
    ``total``: one noisy number. A target that points elsewhere gets a part near 0, and
    the result is nearly that without it.
    """
    base = None
    if target is not None and (length := float(target @ target)) > 0.0:
        base = min(max(float(total @ target) / length, 0.0), 1.0) * target
    rest = total if base is None else total - base
    energy = float(rest @ rest)
    noise = len(total) * noise_stddev**2
    shrink = max(0.0, 1.0 - noise / energy) if energy > 0.0 else 0.0
    return rest * shrink if base is None else base + rest * shrink


class SignalFilter:
    """Noisy sums of gradients, filtered by the spectrum of public rows.

    Parameters
    ----------
    second_moment : array of shape (d, d)
        Of public rows, as the private ones are scaled and centred, in any unit. Public.

    Notes
    -----
    **Model.** In the coordinates of the eigenvectors of ``second_moment``, with
    eigenvalues ``l_i``, an entry of a sum of gradients is normal with variance ``a l_i
    + b + s**2``: signal as large as the rows are in that direction, signal that lies in
    all directions alike, and noise of known stddev ``s``. Of the sum ``d m`` entries
    are known, so ``a, b >= 0`` are found by maximum likelihood, by weighted least
    squares in rounds. The mean of the signal, given the entry, is the entry times ``k_i
    = (a l_i + b) / (a l_i + b + s**2)`` (Wiener). The gains are divided by the largest:
    a common factor tells no class from another.

    **Guard.** With ``b`` alone nothing is filtered. Gains are mixed, ``w k_i + 1 - w``,
    by the probability ``w`` of the spectrum against ``b`` alone, from the ratio of the
    likelihoods at ``e**-2`` to one. Public rows of another kind have their eigenvectors
    elsewhere: the entries then have one variance, ``b`` explains them as well, and the
    sum stays as it is. So it does where noise hides all.

    **Privacy.** Post-processing of releases and public facts.

    Source. Empirical Bayes, as Efron and Morris 1973, with two parts of variance.
    """

    def __init__(self, second_moment: Float[np.ndarray, "d d"]) -> None:
        values, vectors = eigenvectors(second_moment)
        values = np.maximum(values, 0.0).astype(np.float64)
        mean = float(np.mean(values))
        self._vectors = vectors.astype(np.float64)
        self._shape = values / mean if mean > 0.0 else np.ones_like(values)
        self._total = self._filtered = np.zeros(1)
        self._variance = 0.0

    def added(self, part: Release) -> Float[np.ndarray, "m c"]:
        """Return by how much the filtered sum of all parts changes with this one.

        Columns beyond the ``d`` features, that of the constant, are not filtered.
        """
        self._total = self._total + part.value
        self._variance += part.noise_stddev**2
        before, size = self._filtered, len(self._shape)
        rows = self._total[:, :size] @ self._vectors
        gains = self.gains(np.mean(rows**2, axis=0), self._variance, len(rows))
        self._filtered = self._total.copy()
        self._filtered[:, :size] -= (rows * (1.0 - gains)) @ self._vectors.T
        return np.asarray(self._filtered - before)

    def gains(
        self, energy: Float[np.ndarray, " d"], noise: float, n_outputs: int
    ) -> Float[np.ndarray, " d"]:
        """Return what entries are multiplied by, in [0, 1]; all 1 where nothing shows.

        ``energy``: their mean square over ``n_outputs``; ``noise``: their noise alone.
        """
        flat = max(float(np.mean(energy)), noise)
        if not flat > noise > 0.0:
            return np.ones_like(energy)
        variance = np.full_like(energy, noise)
        for _ in range(_ROUNDS):
            signal = _fitted(self._shape, energy - noise, (noise / variance) ** 2)
            variance = signal + noise
        gains = signal / variance
        if not (largest := float(np.max(gains))) > 0.0:
            return np.ones_like(energy)
        terms = np.log(flat / variance) + energy * (1.0 / flat - 1.0 / variance)
        evidence = 0.5 * n_outputs * float(np.sum(terms)) - _PENALTY
        sure = 1.0 / (1.0 + math.exp(-min(max(evidence, -700.0), 700.0)))
        return np.asarray(sure * gains / largest + 1.0 - sure)


def _fitted(
    shape: Float[np.ndarray, " d"],
    wanted: Float[np.ndarray, " d"],
    weights: Float[np.ndarray, " d"],
) -> Float[np.ndarray, " d"]:
    """Return ``a shape + b``, ``a, b >= 0``, by weighted least squares."""
    parts = np.stack([shape, np.ones_like(shape)])
    products, sums = (parts * weights) @ parts.T, (parts * weights) @ wanted
    found = np.linalg.lstsq(products, sums)[0]
    if not np.all(found >= 0.0):  # the better of the two alone
        alone = np.maximum(sums, 0.0) / np.diag(products)
        found = np.where(np.argmax(alone * sums) == np.arange(2), alone, 0.0)
    return np.asarray(found @ parts)
