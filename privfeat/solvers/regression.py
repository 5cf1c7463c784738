"""Ridge regression from one noisy matrix of second moments, and its corrections."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from privfeat.core.noise.release import Release
from privfeat.solvers.regression_prior import PriorPart
from privfeat.solvers.spectrum import SINGULAR, cleaned, noise_ridge, positive_part

# Ridge of the first solution, and what damps a step, in edges of the noise.
_FIRST_RIDGE, _DAMPING = 0.8, 0.3
# Where a correction cuts residuals: so many of their standard deviations; more where
# the noise that follows is still this part of what a sample of records varies by.
_CUT, _NOISE_PART = 1.5, 0.1
# Of a step as long as noise alone would be: what is taken away. From a prior alone,
# which has no noise to be mended, steps are taken more slowly.
_SHRINK, _SHRINK_FROM_PRIOR = 0.75, 1.0

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
    prior : array of shape (n_features,) or (n_coefficients,), optional
        Public slopes, and offset if known, in units of `coef`. Centre of the ridge.

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

    **Prior.** Corrections begin at ``a P + (1 - a) w``, with the prior ``P``, the first
    solution ``w``, and the part ``a`` that `PriorPart` finds in ``M``. Where the prior
    is right and noise large, they begin where there is none, and residuals, hence
    their noise, are small; what is wrong in the prior, corrections take away. Each also
    tells more of ``a``: what shrinking has left of its step is taken along ``P - w``
    alone, to the ``a`` then found. A prior without an offset gets that of the noisy
    means. With ``a = 1`` steps are shrunk for all of their noise, since nothing in
    ``P`` is noise that a step would mend.
    """

    noisy_moments: Release
    n_features: int
    row_norm: float
    constant: float
    ridge: float | None = None
    prior: Float[np.ndarray, " p"] | None = None

    def coef(self) -> Float[np.ndarray, " k"]:
        """Return slopes and, with a constant, the offset; per unit of the coordinate.

        In the unit of the target coordinate. Without a ridge the matrix may be
        singular: directions in which it has only rounding get no slope.
        """
        moments, n, means = self.moments, self.n_features, self._means
        ridge = self._edges(_FIRST_RIDGE) if self.ridge is None else self.ridge
        if self.constant:
            moments = moments[:-1, :-1] - np.outer(means, moments[:-1, -1])
        damped = moments[:n, :n] + ridge * np.eye(n)
        slopes = np.linalg.lstsq(damped, moments[:n, n], rcond=SINGULAR)[0]
        return self._with_offset(slopes, means)

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
        damped = self._damped()
        inverse = np.linalg.inv(damped)
        noise = noise_stddev**2 * np.trace(inverse)
        quiet = _NOISE_PART * math.sqrt(self.count) * bound
        cut = max(_CUT, quiet / noise_stddev if noise_stddev > 0.0 else math.inf)
        penalty = np.zeros(len(coef))
        penalty[:n] = self.ridge or 0.0
        prior, part, at = self._whole_prior(), None, 0.0
        if noise_stddev > 0.0 and self.prior is not None:  # else `coef` is exact
            constant = self.constant != 0.0
            part = PriorPart(self.noisy_moments, self.prior[:n], constant=constant)
            apart, at = prior - coef, part.value
            coef = coef + at * apart
        for _ in range(n_steps):
            direction = self.residual_of(coef)
            unit = self._part(direction, cut) / bound
            released = residual_sums(direction / unit)
            gradient = unit * released.value[0, self.kept]
            gradient -= penalty * (coef - at * prior)
            step = inverse @ gradient
            if noise_stddev > 0.0:  # else `coef` is exact but for rounding
                length = max(float(gradient @ step), 1e-300)
                shrink = _SHRINK + at * (_SHRINK_FROM_PRIOR - _SHRINK)
                kept = max(0.0, 1.0 - shrink * unit**2 * noise / length)
                coef += kept * step
            if part is not None:
                slope, norm = float(gradient @ apart), float(np.linalg.norm(apart))
                part.learn(slope, unit * noise_stddev * norm, self._of_rows(apart))
                # what the step has left of the way to the best part
                coef += (1.0 - kept) * (part.value - at) * apart
                at += (1.0 - kept) * (part.value - at)
                at += kept * slope / max(float(apart @ damped @ apart), 1e-300)
                at = part.value = min(max(at, 0.0), 1.0)
        return coef

    def residual_of(self, coef: Float[np.ndarray, " k"]) -> Float[np.ndarray, " c"]:
        """Return the vector whose product with a row is its residual."""
        direction = -self._of_rows(coef)
        direction[self.n_features] = 1.0
        return direction

    def _of_rows(self, coef: Float[np.ndarray, " k"]) -> Float[np.ndarray, " c"]:
        """Return the vector whose product with a row is what it predicts."""
        direction = np.zeros(len(self.moments))
        direction[self.kept] = coef
        return direction

    def _whole_prior(self) -> Float[np.ndarray, " k"]:
        """Return the prior with an offset, of the noisy means if none is known."""
        if self.prior is None:
            return np.zeros(len(self.kept))
        if len(self.prior) == len(self.kept):
            return self.prior
        return self._with_offset(self.prior, self._means)

    @cached_property
    def moments(self) -> Float[np.ndarray, "c c"]:
        """The nearest positive semidefinite matrix."""
        return positive_part(self.noisy_moments)

    @cached_property
    def kept(self) -> Int[np.ndarray, " k"]:
        """The coordinates that have coefficients: all but the target."""
        return np.delete(np.arange(len(self.moments)), self.n_features)

    @property
    def _means(self) -> Float[np.ndarray, " m"]:
        """The noisy means of features and target, per unit of the constant."""
        if not self.constant:
            return np.zeros(self.n_features + 1)
        return np.asarray(self.moments[:-1, -1] / self._corner)

    def _with_offset(
        self, slopes: Float[np.ndarray, " d"], means: Float[np.ndarray, " m"]
    ) -> Float[np.ndarray, " k"]:
        offset = [means[-1] - means[:-1] @ slopes] if self.constant else []
        return np.array([*slopes, *offset])

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
