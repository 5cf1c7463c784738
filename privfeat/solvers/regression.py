"""Ridge regression from one noisy matrix of second moments, and its corrections."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from privfeat.core.noise.release import Release
from privfeat.solvers.spectrum import cleaned, noise_ridge, positive_part

# Ridge of the first solution, and what damps a step, in edges of the noise.
_FIRST_RIDGE, _DAMPING = 0.8, 0.3
# Where a correction cuts residuals: so many of their standard deviations; more where
# the noise that follows is still this part of what a sample of records varies by.
_CUT, _NOISE_PART = 1.5, 0.1
# Of a step as long as noise alone would be: what is taken away.
_SHRINK = 0.75

# Returns the noisy sum of the rows' ``(v . z) z``, each cut to a norm, as one row.
ResidualSums = Callable[[Float[np.ndarray, " c"]], Release]


@dataclass(frozen=True)
class NoisyRegression:
    """Ridge regression of one coordinate of rows on the others.

    Parameters
    ----------
    noisy_moments : Release
        ``M = sum z z^T`` for rows ``z`` of the features, the target and, for an offset,
        a constant coordinate.
    n_features : int
    row_norm : float
        ``R``, to which rows are cut, in the unit of the rows.
    constant : float
        The constant coordinate; 0 for none.
    ridge : float, optional
        Added to the diagonal of the features' centred moments; >= 0. The offset is not
        penalized. Default: 0.8 times the edge of the noise in the first solution;
        corrections then take back what it shrinks, as far as they can tell.

    Notes
    -----
    The noisy matrix is first projected on the positive semidefinite ones. The Schur
    complement of the constant coordinate, which removes the means, is then
    positive semidefinite as well. A noisy count that could be zero is lifted to the
    stddev of its noise: the means shrink instead of exploding.

    **Corrections.** For coefficients ``w`` let ``v = (-w, 1)``: ``v . z`` is the
    residual of a row. A Newton step adds ``H sum (v . z) z``, with ``H`` the inverse of
    the damped moments. Its sum is released for ``v / u`` with a unit ``u``: what one
    record adds is cut to a fixed norm, whatever ``u`` is, and the noise is multiplied
    by ``u``, so it shrinks with the residuals. That of the target in ``M`` is noise of
    numbers in [-1, 1]; and noise in the Gram matrix now multiplies the error of ``w``,
    no longer ``w`` itself. ``u`` times the bound is ``c sqrt(v^T M v tr M) / n``, for a
    noisy count ``n``, or its bound ``tr M / R**2`` without a constant: ``c`` times the
    product of the root mean squares of residuals and rows. ``c`` is 1.5, or more where
    the noise is then still a tenth of the stddev of the sum over samples of records,
    since cutting residuals has a bias. A step is shrunk as James and Stein do, in the
    metric of ``H``, for three quarters of its noise.
    """

    noisy_moments: Release
    n_features: int
    row_norm: float
    constant: float
    ridge: float | None = None

    def coef(self) -> Float[np.ndarray, " k"]:
        """Return slopes and, with a constant, the offset; per unit of the coordinate.

        In the unit of the target coordinate.
        """
        moments, n = self.moments, self.n_features
        ridge = self._edges(_FIRST_RIDGE) if self.ridge is None else self.ridge
        means = np.zeros(n + 1)
        if self.constant:
            means = moments[:-1, -1] / self._corner
            moments = moments[:-1, :-1] - np.outer(means, moments[:-1, -1])
        matrix, products = moments[:n, :n] + ridge * np.eye(n), moments[:n, n]
        try:
            slopes = np.linalg.solve(matrix, products)
        except np.linalg.LinAlgError:  # a ridge of 0, where noise left no rank
            slopes = np.linalg.lstsq(matrix, products)[0]
        offset = [means[n] - means[:n] @ slopes] if self.constant else []
        return np.array([*slopes, *offset])

    def corrected(
        self,
        residual_sums: ResidualSums,
        *,
        n_steps: int,
        bound: float,
        noise_stddev: float,
    ) -> Float[np.ndarray, " k"]:
        """Return `coef` after ``n_steps`` corrections, of one release each.

        ``bound`` is the norm to which each record's part of a released sum is cut, and
        ``noise_stddev`` that of the sum.
        """
        coef, n = self.coef(), self.n_features
        inverse = np.linalg.inv(self._damped())
        noise = noise_stddev**2 * np.trace(inverse)
        quiet = _NOISE_PART * math.sqrt(self.count) * bound
        cut = max(_CUT, quiet / noise_stddev if noise_stddev > 0.0 else math.inf)
        penalty = np.zeros(len(coef))
        penalty[:n] = self.ridge or 0.0
        for _ in range(n_steps):
            direction = self.residual_of(coef)
            unit = self._part(direction, cut) / bound
            released = residual_sums(direction / unit)
            gradient = unit * released.value[0, self.kept] - penalty * coef
            step = inverse @ gradient
            if noise_stddev > 0.0:  # else `coef` is exact but for rounding
                length = max(float(gradient @ step), 1e-300)
                coef += max(0.0, 1.0 - _SHRINK * unit**2 * noise / length) * step
        return coef

    def residual_of(self, coef: Float[np.ndarray, " k"]) -> Float[np.ndarray, " c"]:
        """Return the vector whose product with a row is its residual."""
        direction = np.ones(len(self.moments))
        direction[self.kept] = -coef
        return direction

    @cached_property
    def moments(self) -> Float[np.ndarray, "c c"]:
        """The nearest positive semidefinite matrix."""
        return positive_part(self.noisy_moments)

    @cached_property
    def kept(self) -> Int[np.ndarray, " k"]:
        """The coordinates that have coefficients: all but the target."""
        return np.delete(np.arange(len(self.moments)), self.n_features)

    @property
    def count(self) -> float:
        """The noisy number of rows, at least one; without a constant, a lower bound."""
        if self.constant:
            return max(self._corner / self.constant**2, 1.0)
        return max(self._size / self.row_norm**2, 1.0)

    @property
    def _corner(self) -> float:
        """The moment of the constant, no less than its noise."""
        corner = float(self.moments[-1, -1])
        return max(corner, self.noisy_moments.noise_stddev, 1e-300)

    @property
    def _size(self) -> float:
        """The noisy sum of the rows' squared norms, no less than its noise."""
        noise = self.noisy_moments.noise_stddev * math.sqrt(len(self.moments))
        return max(float(np.trace(self.noisy_moments.value)), noise, 1e-300)

    @property
    def damping(self) -> float:
        """What is added to the moments of features in a step; > 0."""
        return max(self._edges(_DAMPING), self.ridge or 0.0)

    def _edges(self, scale: float) -> float:
        return noise_ridge(self.noisy_moments, scale=scale)

    def gram(self) -> Float[np.ndarray, "k k"]:
        """Return the moments of what has coefficients, as near as noise lets know."""
        value = self.noisy_moments.value[np.ix_(self.kept, self.kept)]
        return cleaned(replace(self.noisy_moments, value=value))

    def _damped(self) -> Float[np.ndarray, "k k"]:
        """Return `gram` with a diagonal that the noise of its eigenvectors needs."""
        diagonal = np.full(len(self.kept), self.noisy_moments.noise_stddev)
        diagonal[: self.n_features] = self.damping
        return self.gram() + np.diag(diagonal + 1e-300)

    def _part(self, direction: Float[np.ndarray, " c"], cut: float) -> float:
        """Return ``cut sqrt(v^T M v tr M) / n``, in squared units of the rows."""
        count, moments, n = self.count, self.moments, self.n_features
        # no more than without coefficients: else noise would bring noise
        energy = min(float(direction @ moments @ direction), float(moments[n, n]))
        size = min(self._size, count * self.row_norm**2)
        part, most = math.sqrt(max(energy, 0.0) * size) / count, 2.0 * self.row_norm**2
        return min(cut * max(part, 1e-9 * most), most)
