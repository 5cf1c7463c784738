"""The weight of a public prior, found from noisy gradients."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privfeat._types import Loss
from privfeat.core.noise.release import Release
from privfeat.solvers.prior import Matrix, PriorWeight, Vector, hidden_count

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# Spread of the scores of the prior in the one step that is taken beside it.
_SPREAD = 0.8
# Standard errors by which slopes must show a prior that is taken in, the most that its
# weight may be of that of what is learned, and the most spread of its scores then.
_SURE, _LESS, _TAKEN = 4.0, 0.7, 0.5
# Curvature along what is learned over that of rows that point everywhere alike: its
# mean and standard deviation, before the releases are seen.
_USUAL, _VARIED = 1.5, 0.5


def bend(n_outputs: int, variance: Vector | float, loss: Loss) -> Any:
    """Return the mean curvature of a loss over that at scores of zero.

    For independent normal scores of this variance. The curvature of the softmax is ``p
    (1 - p)`` with ``p = sigmoid(s - L)``; ``L``, the logarithm of the sum of the other
    exponentials, is taken to be normal (Fenton 1960).
    """
    if loss == "squared":
        return np.ones_like(variance)
    v = np.minimum(np.asarray(variance, np.float64), 30.0)[..., None]
    mean, base = np.zeros_like(v), 0.25
    if loss == "softmax":
        others, base = n_outputs - 1, (n_outputs - 1) / n_outputs**2
        more = np.log1p(np.expm1(v) / others)
        mean, v = -math.log(others) - v / 2.0 + more / 2.0, v + more
    p = 1.0 / (1.0 + np.exp(-mean - np.sqrt(v) * _NODES))
    return np.minimum((p * (1.0 - p)) @ _WEIGHTS / base, 1.0)


@dataclass
class _Sums:
    """Slopes along the prior, over steps: of all alike, or more of the late ones."""

    weight: float = 0.0
    squares: float = 0.0
    slopes: float = 0.0
    lengths: float = 0.0

    def add(self, weight: float, slope: float, length: float) -> None:
        self.weight += weight
        self.squares += weight**2
        self.slopes += weight * slope
        self.lengths += weight * length

    @property
    def variance(self) -> float:
        """Of a mean, in units of that of one step."""
        return self.squares / self.weight**2


class SlopeWeight(PriorWeight):
    """The weight of a prior beside coefficients that noisy gradients have taught.

    Attributes
    ----------
    at : float
        The weight at which the next gradient is taken: 0, but in the second step, and
        once the prior is taken in.

    Notes
    -----
    **Where gradients are taken.** At ``D`` alone: what is learned is what a fit without
    a prior learns, so a weight of zero is that fit. A gradient beside the prior would
    tell of labels less than of ``<P G, P>``, which noise hides: a belief about it would
    pass for evidence. The second step alone is taken beside the prior. By how much
    steeper the loss is there than in the steps around it is how ``<P G, P>`` is known,
    several times better than from a noisy Gram matrix.

    **Evidence.** The slope of the loss along ``P``, ``<g, P>``, tells without any
    linear approximation whether ``P`` adds to what is learned. If errors of both are
    independent, its mean is ``-p n u (b - c m q v)`` for scores of ``P`` and ``D`` of
    spread ``u`` and ``v``, ``b`` the best score, and ``c`` the mean curvature at scores
    of that spread (`bend`). Where ``D`` has learned all that ``P`` knows, the slope is
    zero and so is the weight, for every prior. Slopes of late steps, by the square of
    their number, say this of what is learned last; those of all steps have less noise.
    Their difference is shrunk by its known noise (James & Stein 1961), so they are told
    apart only where it shows.

    **Taken in.** Once slopes show a prior by four standard errors, and it weighs less
    than what is learned, the later gradients are taken beside it, and it keeps that
    weight: of scores with the best spread for it alone, and at most 0.5. What is wrong
    in it is then unlearned, class by class, and what is right need not be learned.

    **What is learned** has the quality of `PriorWeight`, from slopes along ``D`` before
    each step, whose noise is fresh; and, with a Gram matrix, from the first gradient,
    which is taken at zero and tells of labels alone. From that, ``D`` less the first
    step is taken, which the noise of that gradient has made. Where both are precise
    they tell the curvature along ``D`` as well.

    **Privacy.** All of it is post-processing of releases and public facts. The weight
    at which a gradient is taken follows from earlier releases, as coefficients do.
    """

    def __init__(self, prior: Matrix, *, loss: Loss, **options: Any) -> None:
        super().__init__(prior, loss=loss, **options)
        self.at, self._loss, self._taken = 0.0, loss, False
        self._steps, self._stddev = 0, 0.0
        self._all, self._late = _Sums(), _Sums()
        self._slopes: list[float] = []  # of the first three steps
        self._probe = 0.0, 0.0  # weight, and energy of what was learned
        self._first, self._step = np.zeros_like(prior), np.zeros_like(prior)
        self._learned = np.zeros_like(prior)
        self._sums = np.zeros(5)
        self._along = _USUAL  # curvature along what is learned

    def update(self, gradient: Release, before: Matrix, after: Matrix) -> None:
        """Learn from a noisy gradient at ``at * prior + before``.

        ``after``: what is learned after the step that it makes.
        """
        if self._taken:
            return
        value, self._stddev = gradient.value, gradient.noise_stddev
        if not self._trace:
            self._count(gradient)
        slope, energy = float(np.sum(value * self.prior)), float(np.sum(before**2))
        if not self._steps:
            self._first, self._step = value, after
        if self._steps < 3:
            self._slopes.append(slope)
        self._steps += 1
        if self.at:
            self._probe = self.at, energy
        else:
            curvature = self._curvature(energy)
            length = curvature * math.sqrt(energy)
            self._all.add(1.0, slope, length)
            self._late.add(float(self._steps) ** 2, slope, length)
            w = float(self._steps - 1)  # what is learned grows with the steps
            here = float(np.sum(value * before))
            self._sums += np.array([1.0, curvature, here, energy, w * energy]) * w
            self._learned += w * before
        self.at = _SPREAD / self._unit if self._steps == 1 else 0.0
        if self._steps > 2:
            self._take_in(after)

    def _take_in(self, learned: Matrix) -> None:
        """Take later gradients beside the prior, if it is sure and weighs less."""
        weight, (q, spread) = self.beside(learned), self._of_learned(learned)
        value, error = self._adds(q)
        if value > _SURE * error and weight * self._unit < _LESS * spread:
            curvature = self._curvature(float(np.sum(learned**2)))
            best = value * self._best / (curvature * len(self.prior))
            self.at, self._taken = min(best, _TAKEN) / self._unit, True

    def _count(self, gradient: Release) -> None:
        """Take the least number of records that a first gradient can be the sum of."""
        noise = gradient.noise_stddev**2 * gradient.value.size
        energy = float(np.sum(gradient.value**2)) - noise
        limit = noise * math.sqrt(2.0 / gradient.value.size)  # stddev of the energy
        shown = energy > 3.0 * limit
        number = math.sqrt(len(self.prior) * max(energy, limit)) / self._norm
        number = number if shown else hidden_count(number)
        self._trace = max(number, 1.0) * self._norm**2

    def _curvature(self, energy: float) -> float:
        """Return the mean curvature of the loss at coefficients of this energy."""
        variance = _USUAL * self._alike * energy / (self._records * len(self.prior))
        return float(self._scale * bend(len(self.prior), variance, self._loss))

    @property
    def _alike(self) -> float:
        """Return the curvature along any direction, if all were alike."""
        return float(self._trace / self.prior.shape[1])

    def _misfit(self, own: Vector) -> Vector:
        at, energy = self._probe
        if not at:
            return np.zeros_like(own)
        start, beside, *after = self._slopes
        rise = beside - (start + after[0] if after else 2.0 * start) / 2.0
        size = self._records * len(self.prior)
        variance = (at**2 * own + _USUAL * self._alike * energy) / size
        expected = self._scale * bend(len(self.prior), variance, self._loss) * at * own
        noise = self._stddev**2 * self._energy * (1.5 if after else 2.0)
        # the curvature of a normal score is right to some hundredths
        error = np.sqrt(noise + (0.05 * expected) ** 2)
        misfit: Vector = ((expected - rise) / error) ** 2
        return misfit

    def beside(self, learned: Matrix) -> float:
        """Return the weight beside these coefficients."""
        if self._taken:
            return self.at
        q, spread = self._of_learned(learned)
        value, error = self._adds(q)
        p = self._quality(value * self._best, error * self._best)
        if not spread > 0.0:  # nothing is learned yet
            unit = self._records * self._unit
            return float(p * self._best * unit / (self._scale * self._own))
        # independent errors: r = p q
        ratio = p * (1.0 - q**2) / max(q * (1.0 - p**2), 0.01 * q)
        return float(ratio * spread / self._unit)

    def _adds(self, q: float) -> tuple[float, float]:
        """Return the quality that slopes show of the prior, and its standard error.

        ``q``: that of what is learned.
        """
        n, m = self._records, len(self.prior)
        size = n * self._unit * self._best
        per_length = m * q * math.sqrt(self._along * self._alike / (n * m)) / self._best
        stddev = self._stddev * math.sqrt(self._energy)

        def shown(sums: _Sums) -> tuple[float, float]:
            left = max(1.0 - per_length * sums.lengths / sums.weight, 0.05)
            error = stddev * math.sqrt(sums.variance)
            return -sums.slopes / sums.weight / (size * left), error / (size * left)

        (value, error), late = shown(self._all), shown(self._late)
        differ = late[0] - value
        noise = (stddev / size) ** 2 * (self._late.variance - self._all.variance)
        if noise < differ**2:
            kept = 1.0 - max(noise, 0.0) / differ**2
            value, error = value + kept * differ, error + kept * (late[1] - error)
        return value, error

    def _of_learned(self, now: Matrix) -> tuple[float, float]:
        """Return the quality of what is learned, and the spread of its scores now."""
        n, m, s = self._records, len(self.prior), self._stddev
        total, curvature, here, energies, squares = self._sums
        mean = s / math.sqrt(max(self._steps, 1))
        energy = float(np.sum(self._learned**2)) / total**2 if total else 0.0
        per_along = self._alike * float(np.sum(now**2)) / (n * m)
        if not energy > 0.0:
            spread = math.sqrt(self._along * per_along)
            return self._quality_learned(0.0, math.inf, mean), spread
        learned, ratio = self._learned / total, energies / total / energy
        alike = self._alike * energy
        usual = _USUAL
        if self._matrix is not None:
            usual = max(usual, self._product(learned, learned) / alike)
        # projection of the labels, which is not known, and curvature
        values = np.array([0.0, usual * alike])
        size = math.sqrt(values[1] / (n * m))
        known = np.diag([(100.0 * n * size) ** 2, (_VARIED * alike) ** 2])
        rows = [[-1.0, curvature / total * ratio]]
        seen, variances = [float(here / total)], [float(s**2 * squares / total**2)]
        rest = learned - self._step
        left = float(np.sum(rest**2))
        if self._gram is not None and left > 0.3 * energy:
            part = energy / max(float(np.sum(rest * learned)), 0.3 * energy)
            rows.append([1.0, 0.0])
            seen.append(-part * float(np.sum(self._first * rest)))
            variances.append((part * s) ** 2 * left)
        H = np.array(rows)
        noise = np.diag(np.array(variances) + 1e-9 * values[1] ** 2)
        gain = known @ H.T @ np.linalg.inv(H @ known @ H.T + noise)
        values = values + gain @ (np.array(seen) - H @ values)
        known = known - gain @ H @ known
        own = max(float(values[1]), 0.7 * alike)
        self._along = own / alike
        unit = n * math.sqrt(own / (n * m))
        error = math.sqrt(max(float(known[0, 0]), 1e-300))
        q = self._quality_learned(float(values[0]) / unit, error / unit, mean)
        return q, math.sqrt(self._along * per_along)
