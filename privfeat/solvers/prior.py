"""The weight of a public prior beside what noisy gradients teach."""

import math
from typing import Any

import numpy as np

from privfeat.core.noise.release import Release
from privfeat.solvers.beliefs import hidden
from privfeat.solvers.prior_scores import Matrix, PriorScores

# Spread of scores of the prior, beside which others are learned: most, and least.
_SPREAD, _WITHOUT_GRAM, _TINY = 0.45, 1.0, 1e-3


class PriorWeight(PriorScores):
    """The weight ``a`` of a prior ``P``, beside coefficients ``D`` that are learned.

    Parameters
    ----------
    prior : array of shape (n_outputs, n_columns)
        ``P``, for bounded rows. Public.
    **scores
        Of `privfeat.solvers.prior_scores.PriorScores`.

    Attributes
    ----------
    at : float
        The weight at which the next gradient is taken, >= 0: that found so far, up to a
        spread of 0.45, or 1 without a Gram matrix. So the steps unlearn what is wrong.

    Notes
    -----
    **Evidence.** A gradient at ``W`` is ``c W G - B`` and noise, with ``G`` the Gram
    matrix and ``c`` the curvature of the loss at equal probabilities. So every gradient
    tells ``B``, and their mean has the noise of all steps together. What is known of
    ``D`` is found from gradients other than those that the noise in ``D`` is of.
    """

    def __init__(self, prior: Matrix, **scores: Any) -> None:
        super().__init__(prior, **scores)
        self.at = 0.0
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
        if self.gram is None and self.at > 0.0:
            self._measure(slope, gradient.noise_stddev, before)
        elif not self.at:
            self._at_zero.append(slope - self._scale * self.product(self.prior, before))
        self._steps += 1
        self._variance += gradient.noise_stddev**2
        self._at += self.at
        self._gradients += gradient.value
        self._learned += before
        # the noise of this gradient is not that of what was learned before it
        here = self.product(before, self.at * self.prior + before)
        self._found_learned += self._scale * here - float(
            np.sum(gradient.value * before)
        )
        self._noise_learned += gradient.noise_stddev**2 * float(np.sum(before**2))
        spread = self.beside(after) * self.unit
        most = _WITHOUT_GRAM if self.gram is None else _SPREAD
        self.at = min(spread, most) / self.unit if spread > _TINY else 0.0

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
        rise = slope - self._scale * self.product(self.prior, before)
        # without noise, to one part in a million
        variance = max(stddev**2 * self.energy, (1e-6 * run * self.own) ** 2)
        precise = run**2 / variance
        self._runs += np.array([precise, precise * rise / run, precise / run])
        total, rises, parts = self._runs
        start = float(np.mean(self._at_zero))
        noise = stddev**2 * self.energy / len(self._at_zero)
        self._found = (rises - parts * start) / total
        self._error = math.sqrt(1.0 / total + (parts / total) ** 2 * noise)

    def beside(self, learned: Matrix) -> float:
        """Return the weight beside these coefficients."""
        k, c = self._steps, self._scale
        mean, at = self._learned / k, self._at / k
        on_prior = -float(np.sum(self._gradients * self.prior)) / k
        on_prior += c * (at * self.own + self.product(self.prior, mean))
        spread = self.spread(mean) or math.inf
        score = self._found_learned / k / spread
        error = math.sqrt(self._noise_learned) / k / spread
        stddev = math.sqrt(self._variance) / k
        found = on_prior, (score, error)
        return self.combined(*found, learned, stddev, self.prior, self.unit)[0]
