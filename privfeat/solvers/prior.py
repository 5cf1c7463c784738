"""The weight of a public prior, found from releases alone."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from privfeat._types import Loss
from privfeat.core.noise.release import Release
from privfeat.solvers.spectrum import positive_part, regularized_inverse

Matrix = Float[np.ndarray, "m c"]

# A belief before any record is seen: the weight at which scores have this spread, in
# stddev over records and classes, give or take a third. A softmax of 5 is nearly sure
# of its class, and far above the 0.75 by which the noise of all steps moves scores.
_SPREAD = 5.0
_DOUBT = 1.0 / 3.0
# Where the weight is tried first that has no Gram matrix, in parts of it.
_PROBE = 0.4
# By which part of it the best weight may drift in a step, while others are learned.
_DRIFT = 1.0 / 40.0
# Curvature where all classes have one probability is largest; later about half of it.
_LATER = 2.0
# By which the error of what is found at zero, where nothing learned has noise, is more.
_AT_ZERO = 3.0
_SCALES = (0.5, 3.0)  # of what is learned, in a step
_GAIN = 0.5  # of one step, at most


class PriorWeight:
    """The weight ``a`` of a prior ``P``, beside coefficients ``D`` that are learned.

    Scores are ``x (a P + D)^T``. Of each release the projections on ``P`` and ``D`` are
    two numbers with noise of known variance.

    Parameters
    ----------
    prior : array of shape (n_outputs, n_columns)
        ``P``, for bounded rows. Public.
    loss : {"softmax", "sigmoid", "squared"}
    row_norm : float
        Of a bounded row.
    gram : Release, optional
        Of the rows. Without one its place is taken by rows of which half lie like
        those of the prior and half in all directions alike, and their number follows
        from the first two gradients: one at a part of the believed weight, one at none.
    spread : float, optional
        Of scores at the believed weight. Default: 5.
    n_records : float, optional
        Released, and taken for 1 where noise has left less. It stands for the trace of
        a matrix that is mostly noise; without it the belief then stays.

    Attributes
    ----------
    at : float
        The weight at which the next gradient is taken.
    value : float
        ``a``, >= 0: what is believed of the weight, shrunk by ``1 - variance /
        mean**2`` (James and Stein): a prior that tells nothing has none.

    Notes
    -----
    **Belief and evidence.** Of the weight there is a normal belief (`_SPREAD`,
    `_DOUBT`), which each release updates by Bayes' rule. Where noise is large the
    belief stays, and the prior decides; where it is small the belief is forgotten.

    **What the best weight is.** Noise in ``D`` makes its scores too large, and steps
    that end early leave them too small. Let ``b P + t D`` have the least loss: then
    ``b / t`` is the weight beside a ``D`` as it is. A Newton step in ``(b, t)`` finds
    it, from the projections of a gradient and the curvature ``[[P H P, P H D], [D H P,
    D H D]]``, with ``H`` the Gram matrix times the curvature of the loss at equal
    probabilities. The variance of ``b / t`` is that of its linear part.

    **What is known of the curvature.** Noise in the matrix may leave next to nothing
    of ``<P G P>``. What bounds it is known before (`_believed`), and the two together
    say how large it is and how sure that is; a Newton step is as unsure. So evidence
    always counts, unless not even the number of records is known.

    **Privacy.** All of it is post-processing of releases and public facts.
    """

    def __init__(
        self,
        prior: Matrix,
        *,
        loss: Loss,
        row_norm: float,
        gram: Release | None = None,
        spread: float | None = None,
        n_records: float | None = None,
    ) -> None:
        m, size = prior.shape
        self.prior, self._gram, self._loss = prior, gram, loss
        self._energy = float(np.sum(prior**2))
        self._blind = False  # nothing is known of curvature
        self._product: Callable[[Matrix], Matrix]
        if gram is None:
            self._trace = 1.0
            self._product = lambda rows: (
                0.5 * ((rows @ prior.T) @ prior / self._energy + rows / size)
            )
        else:
            noise = gram.noise_stddev * math.sqrt(size)
            self._trace = float(np.trace(gram.value))
            if self._trace < 3.0 * noise:  # next to nothing but noise
                self._blind = n_records is None
                # noise may leave less than no record: the count of one is least
                count = 0.0 if n_records is None else max(n_records, 1.0)
                self._trace = max(count * row_norm**2, noise if self._blind else 0.0)
            self._trace = max(self._trace, 1e-300)
            matrix = positive_part(gram) if gram.symmetric else gram.value
            self._product = lambda rows: np.asarray(rows @ matrix)
        self._own: float = float(np.sum(self._product(prior) * prior))
        self._doubt = 0.0
        if gram is not None:
            error = gram.noise_stddev * float(np.linalg.norm(prior @ prior.T))
            found = float(np.sum((prior @ gram.value) * prior))  # with no bias
            self._own, self._doubt = self._believed(found, error)
        self._scale: float = {"softmax": 1.0 / m, "sigmoid": 0.25, "squared": 1.0}[loss]
        unit = row_norm * math.sqrt(self._own / (m * self._trace))
        self._start = (_SPREAD if spread is None else spread) / unit
        self._mean, self._variance = self._start, (_DOUBT * self._start) ** 2
        self._tried: list[tuple[float, float]] = []
        self.value = shrunk(self._mean, self._variance)
        self.at = 0.0 if gram is not None else _PROBE * self._start

    def update(self, gradient: Release, learned: Matrix) -> None:
        """Learn from a noisy gradient at ``at * prior + learned``."""
        slope = float(np.sum(gradient.value * self.prior))
        noise = gradient.noise_stddev * math.sqrt(self._energy)
        own = self._curvature(self.prior, self.prior)
        self._tried.append((self.at, slope))
        if len(self._tried) == 1:
            if self._gram is None:
                self.at = 0.0
            else:  # nothing is learned yet: a Newton step in one dimension
                self._settle(-slope / own, (_AT_ZERO * noise / own) ** 2)
        elif len(self._tried) == 2 and self._gram is None:
            (far, steep), _ = self._tried
            rise = (steep - slope) / far
            rise = shrunk(rise, 4.0 * (noise / far) ** 2)
            self._scale *= rise / own
            for at, found in self._tried if rise else [(0.0, 0.0)]:
                error = (noise / rise) ** 2 if rise else math.inf
                estimate = at - found / rise if rise else 0.0
                self._settle(min(max(estimate, -self._start), 2.0 * self._start), error)
        elif self._scale:
            self._step(gradient, slope, learned)

    def _step(self, gradient: Release, slope: float, learned: Matrix) -> None:
        """Make a Newton step in the weights of the prior and of what is learned."""
        own = self._curvature(self.prior, self.prior)
        other = max(self._curvature(learned, learned), 1e-12 * own)
        most = 0.9 * math.sqrt(own * other)
        cross = min(max(self._curvature(self.prior, learned), -most), most)
        later = 1.0 if self._loss == "squared" else _LATER
        inverse = later * np.linalg.inv([[own, cross], [cross, other]])
        slopes = np.array([slope, np.sum(gradient.value * learned)])
        scale = 1.0 - float(inverse[1] @ slopes)
        inside = _SCALES[0] < scale < _SCALES[1]
        scale = min(max(scale, _SCALES[0]), _SCALES[1])
        weight = self.at - (later * slope + cross * (scale - 1.0)) / own
        weight = min(max(weight, -self._start), 3.0 * self._start)
        linear = np.array([later / own, 0.0]) / scale
        if inside:
            linear = inverse @ (np.array([1.0, -weight / scale]) / scale)
        overlap = float(np.sum(self.prior * learned))
        overlaps = np.array([[self._energy, overlap], [overlap, np.sum(learned**2)]])
        self._variance += (_DRIFT * self._start) ** 2
        error = gradient.noise_stddev**2 * float(linear @ overlaps @ linear)
        self._settle(weight / scale, error, _GAIN)

    def least_squares(self, sums: Release, *, ridge: float) -> Matrix:
        """Return coefficients from noisy sums ``B`` of the rows times their targets.

        Notes
        -----
        The weight is that of the prior alone: ``<P, B> / <P G, P>``. What it leaves is
        learned, ``D = (B - a P G) (G + ridge I)^-1``, and added ``t`` times. The loss
        of ``a P + t D`` is least at ``t = <D, B - a P G> / <D G, D>``; of the numerator
        the mean of what noise contributes, ``s**2 tr (G + ridge I)^-1`` for each
        output, is taken off. ``t`` is cut to [0, 1], and shrunk by its own variance,
        but not where the prior has next to no weight and nothing else is left.
        """
        if (gram := self._gram) is None:
            raise TypeError("gram must be a release for least squares, got None.")
        own = self._curvature(self.prior, self.prior)
        stddev, prior = sums.noise_stddev, self.prior
        total = sums.value - sums.value.mean(axis=0)
        error = stddev * math.sqrt(self._energy) / own
        self._settle(float(np.sum(prior * total)) / own, error**2)
        left = total - self.value * (prior @ gram.value)
        in_gram = gram.noise_stddev**2 / 2.0 * self.value**2 * self._energy
        outputs = stddev**2 * (len(prior) - 1) + in_gram
        if gram.symmetric:
            gram = replace(gram, value=positive_part(gram))
        inverse = regularized_inverse(gram, ridge=ridge)
        learned = left @ inverse.T
        found = float(np.sum(learned * left)) - outputs * float(np.trace(inverse))
        noise = outputs * float(np.sum(inverse**2))
        energy = max(float(np.sum(learned**2)) - noise, 0.0)
        each = outputs / len(prior)
        sure = shrunk(found, each * (2.0 * noise + 4.0 * energy))
        doubt = 1.0 - min(1.0, self.value / (_DOUBT * self._start))
        found = sure + doubt * (max(found, 0.0) - sure)
        size = float(np.sum((learned @ gram.value) * learned))
        part = min(found / max(size, 1e-300), 1.0)
        common = (sums.value - total) @ inverse.T
        return np.asarray(self.value * prior + part * learned + common)

    def _settle(self, estimate: float, variance: float, most: float = 1.0) -> None:
        """Update the belief by an estimate, a Newton step from ``at``."""
        step = max((estimate - self.at) ** 2 - variance, 0.0)
        variance = math.inf if self._blind else variance + self._doubt * step
        together = self._variance + variance
        # without noise what is settled is exact, and stays
        gain = min(most, self._variance / together) if together else 0.0
        self._mean += gain * (estimate - self._mean)
        self._variance *= 1.0 - gain
        self.at = self.value = shrunk(self._mean, self._variance)

    def _believed(self, found: float, error: float) -> tuple[float, float]:
        """Return what is believed of ``<P G, P>``, and the variance of its logarithm.

        Before ``found`` is seen, with the standard error ``error``, the logarithm is
        equally likely to be anywhere between that of rows that point everywhere alike
        and that of rows of which half lie like those of the prior.
        """
        least = self._trace * self._energy / self.prior.shape[1]
        likely = 0.5 * self._trace * float(np.sum((self.prior @ self.prior.T) ** 2))
        most = max(0.5 * least + likely / self._energy, found, 1.01 * least)
        grid = np.linspace(math.log(least), math.log(most), 200)
        chance = -0.5 * ((np.exp(grid) - found) / max(error, 0.02 * least)) ** 2
        chance = np.exp(chance - np.max(chance))
        chance /= np.sum(chance)
        mean = float(chance @ grid)
        return math.exp(mean), float(chance @ (grid - mean) ** 2)

    def _curvature(self, left: Matrix, right: Matrix) -> float:
        """Return that of the loss at equal probabilities between two directions.

        Along one direction at least that of rows which point everywhere alike: noise in
        the matrix may leave less than nothing.
        """
        if left is self.prior is right:
            return self._scale * self._own
        found = float(np.sum(self._product(left) * right))
        if left is right:
            least = self._trace / left.shape[1]
            found = max(found, least * float(np.sum(left**2)))
        return self._scale * found


def shrunk(value: float, variance: float) -> float:
    """Return a positive number, shrunk by ``1 - variance / value**2``; else 0."""
    return value * max(1.0 - variance / value / value, 0.0) if value > 0.0 else 0.0
