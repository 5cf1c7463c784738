"""Public rows beside releases: they show in which directions to expect a signal.

All of it is post-processing of releases with noise of known stddev.
"""

import math

import numpy as np
from jaxtyping import Float

from privfeat._process import one_thread_a_product
from privfeat.core.noise.release import Release
from privfeat.solvers.spectrum import eigenvectors

# What the evidence for the spectrum must exceed, in units of log likelihood: one more
# number is fitted. Noise alone exceeds it once in 40 times (half a chi square above 4).
_PENALTY = 2.0
# By how many standard errors filtered sums may seem worse than sums as they are.
_MARGIN = 1.0
_POWER = 0.25  # of the gains of Wiener
_ROUNDS = 10  # of weighted least squares, which converge by a factor a round


class SignalFilter:
    """Noisy sums of gradients, filtered by the spectrum of public rows.

    Parameters
    ----------
    second_moment : array of shape (d, d)
        Of public rows, as the private ones are scaled and centred, in any unit. Public.
    inverse : array of shape (c, c), c >= d
        ``H``: sums times ``-H`` are coefficients, up to a factor. The first ``d``
        columns are those of the features. Made of releases.

    Notes
    -----
    **Model.** In the coordinates of the eigenvectors of ``second_moment``, with
    eigenvalues ``l_i``, an entry of a sum of gradients is normal with variance ``a l_i
    + b + s**2``: signal as large as the rows are in that direction, signal that lies in
    all directions alike, and noise of known stddev ``s``. Of the sum ``d m`` entries
    are known, so ``a, b >= 0`` are found by maximum likelihood, by weighted least
    squares in rounds.

    **Gains.** An entry is multiplied by ``k_i**0.25``, for Wiener's gain ``k_i = (a l_i
    + b) / (a l_i + b + s**2)``, over the largest: a common factor tells no class from
    another. Wiener's gain has the least error in sums. But a score weighs a direction
    by ``l_i`` once more: where signal is in proportion to ``l_i``, and noise large,
    scores are best without a filter. On Banking77 Wiener's gain lost 7 points. The
    fourth root, chosen on CIFAR-10 at 64 and on Banking77, keeps most of what a filter
    gains where the signal lies in few directions, and loses little elsewhere.

    **Evidence.** With ``b`` alone nothing is filtered. Gains are mixed, ``w k + 1 -
    w``, by the probability ``w`` of the spectrum against ``b`` alone, from the ratio of
    the likelihoods at ``e**-2`` to one. Public rows that have nothing in common have
    their eigenvectors elsewhere: the entries then have one variance, ``b`` explains
    them as well, and the sum stays as it is. So it does where noise hides all.

    **Guard.** A spectrum that explains sums need not help scores. What coefficients ``W
    = -T H`` of a sum ``T = S + Z`` are worth is the score ``<W, -S>`` that they give to
    the right classes, in units of the spread of scores over public rows, ``norm(W
    M**0.5)``. For noise ``Z`` in ``m`` rows and gains ``K``, ``<T K H, T> - s**2 m tr(K
    H)`` estimates ``<T K H, S>`` without bias (Stein 1981, of a linear estimate; the
    two numbers that ``K`` is fitted by are neglected, and so is that later gradients
    answer to the noise of earlier ones). Nothing is filtered where the difference to
    the sum as it is lies below zero by more than its standard error, which is known as
    well. Rows of another kind overstate the spread of what is moved into their long
    directions. So the guard errs towards the sum as it is.

    **Privacy.** Post-processing of releases and public facts.

    Source. Empirical Bayes, as Efron and Morris 1973, with two parts of variance.
    """

    def __init__(
        self,
        second_moment: Float[np.ndarray, "d d"],
        inverse: Float[np.ndarray, "c c"],
    ) -> None:
        values, vectors = eigenvectors(second_moment)
        values = np.maximum(values, 0.0).astype(np.float64)
        mean, size = float(np.mean(values)), len(values)
        self._vectors = vectors.astype(np.float64)
        self._shape = values / mean if mean > 0.0 else np.ones_like(values)
        half = 0.5 * (inverse + inverse.T)[:size, :size]
        with one_thread_a_product():
            self._inverse = self._vectors.T @ half @ self._vectors
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
        better, error = self.advantage(rows, gains, self._variance)
        self._filtered = self._total.copy()
        if better >= -_MARGIN * error:
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
        return np.asarray(sure * (gains / largest) ** _POWER + 1.0 - sure)

    def advantage(
        self,
        rows: Float[np.ndarray, "m d"],
        gains: Float[np.ndarray, " d"],
        noise: float,
    ) -> tuple[float, float]:
        """Return by how much gains raise the score in its spread, and how sure that is.

        Of a sum in the coordinates of the eigenvectors: the estimate, and its standard
        error. Both are 0 where nothing is filtered.

        For ``A = K H / n_1 - H / n_0``, with the spreads ``n_1``, ``n_0``, of ``<T A,
        S>`` the estimate ``<T A, T> - s**2 m tr A`` is off by ``<S A, Z> + <Z A, Z> -
        s**2 m tr A``. That has mean 0 and variance ``s**2 norm(S A)**2 + s**4 m (tr A
        A^T + tr A**2)``, and ``norm(T A)**2`` is ``norm(S A)**2 + s**2 m tr A A^T`` in
        the mean.
        """
        if np.all(gains == 1.0):
            return 0.0, 0.0
        plain, filtered = rows @ self._inverse, (rows * gains) @ self._inverse
        spreads = [np.sqrt(np.sum(w**2 * self._shape)) for w in (filtered, plain)]
        if not min(spreads) > 0.0:
            return 0.0, 0.0
        moved = filtered / spreads[0] - plain / spreads[1]
        parts = gains / spreads[0] - 1.0 / spreads[1]
        known = noise * len(rows) * float(parts @ np.diag(self._inverse))
        square = len(rows) * float(parts @ self._inverse**2 @ parts)
        better = float(np.sum(rows * moved)) - known
        variance = noise * float(np.sum(moved**2)) + noise**2 * square
        return better, math.sqrt(max(variance, 0.0))  # a raw inverse is indefinite


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
