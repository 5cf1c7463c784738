"""How much a regression keeps of a public guess, by what its releases tell."""

import math

import numpy as np
from jaxtyping import Float

from privfeat.core.noise.release import Release

# What the best multiple of a guess can be. It is about 1 as likely as not, with this
# standard deviation, and otherwise anything: of a wrong guess around zero, or below.
_MULTIPLES = np.linspace(-1.5, 1.5, 61)
_SPREAD = 0.25
_GOOD = np.exp(-0.5 * ((_MULTIPLES - 1.0) / _SPREAD) ** 2)
_BELIEF = 0.5 * _GOOD / np.sum(_GOOD) + 0.5 / len(_MULTIPLES)


class PriorPart:
    """The part of public slopes that a regression keeps, between 0 and 1.

    Parameters
    ----------
    noisy_moments : Release
        Of features, target and, if there is one, a ``constant`` coordinate, as
        `privfeat.solvers.regression.NoisyRegression` has them. With noise.
    slopes : array of shape (n_features,)
        Of the prior; public.
    constant : bool

    Attributes
    ----------
    value : float
        The part that is found so far.

    Notes
    -----
    **From the moments.** Of rows ``z`` let ``u . z`` be what the slopes predict, and
    ``v . z`` the target, both less their noisy means. The best multiple of the slopes
    is ``v^T M u / q`` with ``q = u^T M u``, and of both the noise is known: ``x^T N y``
    for the symmetric noise ``N`` has variance ``s**2 / 2 (|x|**2 |y|**2 +
    (x . y)**2)``. So each multiple ``a`` has a likelihood, that of ``v^T M u`` being
    ``a q``; of ``q``, which noise may hide, the logarithm is equally likely to be
    anywhere up to three stddevs above what was released. Beforehand ``a`` is near 1
    with probability one half, else uniform in [-1.5, 1.5].

    **From corrections.** The gradient of the squared loss between the prior ``P`` and
    the first solution ``w``, a single number with noise of known variance, tells how
    far from there the best part is: its likelihood is multiplied to those before. One
    number has less noise than a step in all directions has.

    The mean of the multiples, cut to [0, 1], is the value. It is post-processing of
    releases and of public facts.
    """

    def __init__(
        self, noisy_moments: Release, slopes: Float[np.ndarray, " d"], *, constant: bool
    ) -> None:
        value, stddev = noisy_moments.value, noisy_moments.noise_stddev
        n = len(slopes)
        both = np.zeros((2, len(value)))
        both[0, :n], both[1, n] = slopes, 1.0
        if constant:  # a noisy count that could be zero is lifted to its noise
            count = max(float(value[-1, -1]), stddev, 1e-300)
            both[:, -1] = -(both @ value[:, -1]) / count
        predicted, target = both
        length, other = float(predicted @ predicted), float(target @ target)
        variance = length * other + float(predicted @ target) ** 2
        self._moments, self._chances = noisy_moments, _BELIEF
        self.value = 0.0
        self.learn(
            float(predicted @ value @ target),
            stddev * math.sqrt(variance / 2.0),
            predicted,
        )

    def learn(
        self, slope: float, error: float, direction: Float[np.ndarray, " c"]
    ) -> None:
        """Learn from how fast the loss falls along a direction, at ``value``.

        ``error`` is the stddev of ``slope``; the product of ``direction`` with a row is
        what the scores change by for a whole part.
        """
        value, stddev = self._moments.value, self._moments.noise_stddev
        curvature = float(direction @ value @ direction)
        blur = max(stddev * float(direction @ direction), 1e-150)
        most = max(curvature, 0.0) + 3.0 * blur
        curvatures = np.geomspace(1e-3 * most, most, 60)
        expected = (_MULTIPLES[:, None] - self.value) * curvatures
        far = ((slope - expected) / max(error, 1e-150)) ** 2
        far += ((curvature - curvatures) / blur) ** 2
        likely = np.exp(-0.5 * np.minimum(far - far.min(), 1400.0)).sum(axis=1)
        chances = likely * self._chances
        # no evidence is so strong that no later one can outweigh it
        self._chances = np.maximum(chances / np.sum(chances), 1e-100)
        mean = self._chances @ _MULTIPLES / np.sum(self._chances)
        self.value = float(np.clip(mean, 0.0, 1.0))
