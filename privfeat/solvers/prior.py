"""The weight of a public prior, found from releases alone."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from privfeat._types import Loss
from privfeat.core.noise.release import Release
from privfeat.solvers.beliefs import belief, hidden
from privfeat.solvers.spectrum import cleaned, regularized_inverse

Matrix = Float[np.ndarray, "m c"]

# Qualities: parts of the score of the right class that scores of their spread can have.
# A prior is worthless as likely as not, else of any quality; what is learned is of any
# order of magnitude. Beyond 0.9 the model of independent errors says nothing.
_OF_PRIOR = np.linspace(0.0, 0.9, 181)
_CHANCES = np.append(0.5, np.full(180, 0.5 / 180))
_LEAST, _MOST = 1e-3, 0.9
# Part of the squared norm of a centred row that the mean of its class has. It is 0.06
# to 0.47 on four sets of features (digits, CIFAR-10, Banking77, scattering).
_OF_CLASSES = 0.25
# Spread of scores of the prior, beside which others are learned: most, and least.
_SPREAD, _WITHOUT_GRAM, _TINY = 0.45, 1.0, 1e-3


class PriorWeight:
    """The weight ``a`` of a prior ``P``, beside coefficients ``D`` that are learned.

    Scores are ``x (a P + D)^T``. All releases on ``P`` and ``D`` are two noisy numbers.

    Parameters
    ----------
    prior : array of shape (n_outputs, n_columns)
        ``P``, for bounded rows. Public.
    loss : {"softmax", "sigmoid", "squared"}
    row_norm : float
        Of a bounded row.
    gram : Release, optional
        Of the rows. Without one its place is taken by rows of which some lie like
        those of the prior, as many as its scores tell, others in all directions alike.
    varied : float, default=1
        The least part of a row's squared norm that is not common to all rows, in (0,
        1]. What is common tells no class from another: scores have less spread.
    n_records : float, optional
        Released: for a matrix that is missing or mostly noise. Without it what the
        sums show, or as many, on a logarithmic scale, as their noise may hide.

    Attributes
    ----------
    at : float
        The weight at which the next gradient is taken, >= 0: that found so far, up to a
        spread of 0.45, or 1 without a Gram matrix. So the steps unlearn what is wrong.

    Notes
    -----
    **Evidence.** All that releases know of labels is ``B = sum (y - mean y) x^T``. A
    gradient at ``W`` is ``c W G - B`` and noise, with ``G`` the Gram matrix and ``c``
    the curvature of the loss at equal probabilities. So every gradient tells ``B``, and
    their mean has the noise of all steps together. ``<B, P> / (n u)``, for ``n``
    records and scores of spread ``u``, is the mean score of the right class in units of
    the spread: 0 for a prior that knows nothing, at most about ``sqrt(2 log m)``, the
    largest of ``m`` scores. Its part of that is the quality ``q``. That of ``D`` is
    found likewise, from gradients other than those that the noise in ``D`` is of.

    **Belief.** A prior is worthless with probability one half, else ``q`` is uniform;
    that of ``D`` is uniform on a logarithmic scale, and less than sums of this noise
    can teach: those of ``n`` unit rows in ``m`` classes have norm ``n / sqrt(m)``, of
    which a quarter tells classes apart. The means after the releases are seen are used.
    Where noise is large they keep the prior, since what is learned is then worth less;
    where it is small, they follow the evidence, and a worthless prior has next to none.

    **Weight.** Of two scores with qualities ``p``, ``q`` and correlation ``r`` the best
    linear combination has weights ``p - r q`` and ``q - r p`` over their spreads
    (Fisher's discriminant). If their errors are independent, ``r = p q``; where the
    Gram matrix tells of more, that counts. All is post-processing of releases.
    """

    def __init__(
        self,
        prior: Matrix,
        *,
        loss: Loss,
        row_norm: float,
        gram: Release | None = None,
        varied: float = 1.0,
        n_records: float | None = None,
    ) -> None:
        m, size = prior.shape
        self._varied = varied
        self.prior, self.at, self._gram = prior, 0.0, gram
        self._energy = float(np.sum(prior**2))
        self._scale = {"softmax": 1.0 / m, "sigmoid": 0.25, "squared": 1.0}[loss]
        # two classes with one score: half of it for each
        self._best = math.sqrt(2.0 * math.log(m)) if m > 1 else 0.5
        self._norm = row_norm
        self._overlap = float(np.sum((prior @ prior.T) ** 2))
        self._trace: float = (
            0.0 if n_records is None else max(n_records, 1.0) * row_norm**2
        )
        self._matrix: Matrix | None = None  # in units of its trace
        self._found, self._error = 0.0, math.inf
        if gram is not None:
            trace = float(np.trace(gram.value))
            noise = gram.noise_stddev * math.sqrt(size)
            if trace > 3.0 * noise:
                self._trace = trace
                matrix = cleaned(gram) if gram.symmetric else gram.value
                self._matrix = matrix / max(float(np.trace(matrix)), 1e-300)
            else:  # next to nothing but noise
                self._trace = self._trace or hidden(noise / row_norm**2) * row_norm**2
                self._matrix = np.eye(size) / size
            self._found = float(np.sum((prior @ gram.value) * prior))
            self._error = gram.noise_stddev * float(np.linalg.norm(prior @ prior.T))
        self._steps, self._variance, self._at = 0, 0.0, 0.0
        self._found_learned, self._noise_learned = 0.0, 0.0
        self._runs = np.zeros(3)
        self._at_zero: list[float] = []
        self._gradients, self._learned = np.zeros_like(prior), np.zeros_like(prior)

    def update(self, gradient: Release, before: Matrix, after: Matrix) -> None:
        """Learn from a noisy gradient at ``at * prior + before``.

        ``after``: what is learned after the step that it makes.
        """
        if not self._trace:
            self._count(gradient)
        slope = float(np.sum(gradient.value * self.prior))
        if self._gram is None and self.at > 0.0:
            self._measure(slope, gradient.noise_stddev, before)
        elif not self.at:
            self._at_zero.append(
                slope - self._scale * self._product(self.prior, before)
            )
        self._steps += 1
        self._variance += gradient.noise_stddev**2
        self._at += self.at
        self._gradients += gradient.value
        self._learned += before
        # the noise of this gradient is not that of what was learned before it
        here = self._product(before, self.at * self.prior + before)
        self._found_learned += self._scale * here - float(
            np.sum(gradient.value * before)
        )
        self._noise_learned += gradient.noise_stddev**2 * float(np.sum(before**2))
        spread = self.beside(after) * self._unit
        most = _WITHOUT_GRAM if self._gram is None else _SPREAD
        self.at = min(spread, most) / self._unit if spread > _TINY else 0.0

    def _count(self, gradient: Release) -> None:
        """Take the least number of records that a first gradient can be the sum of."""
        noise = gradient.noise_stddev**2 * gradient.value.size
        energy = float(np.sum(gradient.value**2)) - noise
        limit = noise * math.sqrt(2.0 / gradient.value.size)  # stddev of the energy
        shown = energy > 3.0 * limit
        number = math.sqrt(len(self.prior) * max(energy, limit)) / self._norm
        number = number if shown else hidden(number)
        self._trace = max(number, 1.0) * self._norm**2

    def _measure(self, slope: float, stddev: float, before: Matrix) -> None:
        """Find ``<P G, P>`` by how much steeper the loss is than without the prior."""
        run = self._scale * self.at
        rise = slope - self._scale * self._product(self.prior, before)
        # without noise, to one part in a million
        variance = max(stddev**2 * self._energy, (1e-6 * run * self._own) ** 2)
        precise = run**2 / variance
        self._runs += np.array([precise, precise * rise / run, precise / run])
        total, rises, parts = self._runs
        start = float(np.mean(self._at_zero))
        noise = stddev**2 * self._energy / len(self._at_zero)
        self._found = (rises - parts * start) / total
        self._error = math.sqrt(1.0 / total + (parts / total) ** 2 * noise)

    def beside(self, learned: Matrix) -> float:
        """Return the weight beside these coefficients."""
        k, c = self._steps, self._scale
        mean, at = self._learned / k, self._at / k
        on_prior = -float(np.sum(self._gradients * self.prior)) / k
        on_prior += c * (at * self._own + self._product(self.prior, mean))
        spread = self._spread(mean) or math.inf
        score = self._found_learned / k / spread
        error = math.sqrt(self._noise_learned) / k / spread
        stddev = math.sqrt(self._variance) / k
        found = on_prior, (score, error)
        return self._weight(*found, learned, stddev, self.prior, self._unit)[0]

    def least_squares(self, sums: Release, *, ridge: float) -> Matrix:
        """Return coefficients from noisy sums ``B`` of the rows times their targets.

        Notes
        -----
        With ``R = (G + ridge I)^-1``, ``D = (B - b P G) R`` is what ``b P`` leaves to
        learn, for the weight ``b`` of the prior alone, and ``P' = P (I - G R)`` what a
        ridge leaves of the prior. Without noise the solution is ``B R + b' P'``, ``b'``
        the weight of ``P'`` beside ``B R``, but at most ``b``, which is a ridge around
        ``b P``. With noise alone it is ``a P + D``, and ``a`` at least ``b``. Between
        them stands the part of the energy of ``D``'s scores that is noise, ``s**2 tr R
        G R`` for each output. From ``<D, B>`` what noise adds, ``s**2 tr R``, is taken.
        """
        if (gram := self._gram) is None:
            raise TypeError("gram must be a release for least squares, got None.")
        stddev, prior = sums.noise_stddev, self.prior
        total = sums.value - sums.value.mean(axis=0)
        inverse = regularized_inverse(gram, ridge=ridge)
        copies = stddev**2 * (len(prior) - 1)

        def weight_of(prior: Matrix, learned: Matrix, unit: float) -> Any:
            score = float(np.sum(learned * total)) - copies * float(np.trace(inverse))
            error = stddev * math.sqrt(2.0) * float(np.linalg.norm(learned))
            spread = self._spread(learned) or math.inf
            found = float(np.sum(prior * total)), (score / spread, error / spread)
            return self._weight(*found, learned, stddev, prior, unit)

        unit, on_prior = self._records * self._unit, float(np.sum(prior * total))
        alone = self._quality(on_prior / unit, stddev * self._energy**0.5 / unit)
        alone *= self._best * unit / self._own
        moved, ridged = (prior @ gram.value) @ inverse.T, total @ inverse.T
        learned = ridged - alone * moved
        weight, part = weight_of(prior, learned, self._unit)
        drowned = max(weight, alone) * prior + learned
        beside = weight_of(rest := prior - moved, ridged, self._spread(rest))[0]
        exact = ridged + min(beside, alone) * rest
        of_noise = copies * self._product(inverse, inverse)
        noise = min(of_noise / max(self._product(learned, learned), 1e-300), 1.0)
        found = noise * drowned + (1.0 - noise) * exact
        found *= 1.0 - noise * (1.0 - min(part, 1.0))
        return np.asarray(found + (sums.value - total) @ inverse.T)

    def _weight(
        self,
        on_prior: float,
        on_learned: tuple[float, float],
        learned: Matrix,
        stddev: float,
        prior: Matrix,
        unit: float,
    ) -> tuple[float, float]:
        """Return the weight beside ``D``, and of both together for the squared loss."""
        n, m, spread = self._records, len(prior), self._spread(learned)
        most = max(n * unit, 1e-300)
        p = self._quality(on_prior / most, stddev * float(np.linalg.norm(prior)) / most)
        if not spread > 0.0:  # nothing is learned yet
            return p * self._best * n * unit / (self._scale * self._own), 1.0
        most = n * self._norm / max(m * stddev * self._best, 1e-300)
        most *= _OF_CLASSES * self._varied
        grid = np.geomspace(_LEAST, min(max(most, 2.0 * _LEAST), _MOST), 200)
        score, error = (x / n for x in on_learned)
        q = belief(grid, grid**0.0, score, error, self._best)
        r = self._product(prior, learned) / max(m * n * unit * spread, 1e-300)
        r = min(max(r, p * q), _MOST)
        rest = max(q - r * p, 0.01 * q)
        part = rest / (1.0 - r**2) * self._best / (m * spread)
        return max(p - r * q, 0.0) / rest * spread / max(unit, 1e-300), part

    def _quality(self, value: float, error: float) -> float:
        return belief(_OF_PRIOR, _CHANCES, value, error, self._best)

    def _spread(self, coef: Matrix) -> float:
        """Return that of scores, at least as if rows pointed everywhere alike."""
        least = self._trace * float(np.sum(coef**2)) / coef.shape[1]
        own = max(self._product(coef, coef), least)
        return math.sqrt(own / (len(coef) * self._records))

    @property
    def _records(self) -> float:
        return float(self._trace / self._norm**2)

    @property
    def _unit(self) -> float:
        """Return the spread of the scores of the prior, over records and outputs."""
        return math.sqrt(self._own / (len(self.prior) * self._records))

    @property
    def _own(self) -> float:
        """Return what is believed of ``<P G, P>``.

        Its logarithm is equally likely to be anywhere between that of rows that point
        everywhere alike, where they vary, and of rows half of which lie like the prior.
        """
        least = self._trace * self._energy / self.prior.shape[1]
        likely = 0.5 * self._trace * self._overlap
        most = max(0.5 * least + likely / self._energy, self._found, 1.01 * least)
        grid = np.geomspace(self._varied * least, most, 200)
        error = max(self._error, 0.02 * least)
        return math.exp(belief(np.log(grid), grid**0.0, self._found, error, grid))

    def _product(self, left: Matrix, right: Matrix) -> float:
        """Return ``<left G, right>``."""
        if self._matrix is not None:
            return self._trace * float(np.sum((left @ self._matrix) * right))
        alike = float(np.sum(left * right)) / left.shape[1]
        near = np.sum((left @ self.prior.T) * (right @ self.prior.T)) / self._energy
        # as many lie like those of the prior as its own scores tell; half at most
        least, most = self._energy / left.shape[1], self._overlap / self._energy
        part = (self._own / self._trace - least) / max(most - least, 1e-300)
        part = min(max(part, 0.0), 0.5)
        return float(self._trace * (part * near + (1.0 - part) * alike))
