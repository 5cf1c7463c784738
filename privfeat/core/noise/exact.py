"""The exact mode: whole sums plus discrete Gaussian noise, and what that costs.

Here all numbers are in steps of the grid on which the sums are whole. A plan holds the
stddev ``c`` of *continuous* noise for a release, at least its noise multiplier times
its sensitivity. The exact mode adds discrete Gaussian noise of parameter ``s^2 =
ceil(c^2) + 4`` instead (`grid_variance`). For a sum of rows at a noise multiplier of
one fourth, ``c = 2**17``, that is a relative ``2**-32`` more noise. Off the diagonal of
a symmetric matrix ``c^2`` is half as large, as in ``draws.symmetric_gaussian``.

Continuous draws in floating point reach only some numbers, and which ones depends on
the sum (Mironov 2012). Combining several draws makes that harder to exploit, not
private ([2]_). Here every whole number is possible, with the stated probability,
whatever the sum is.

**Sensitivity.** Sums are int64 totals of whole contributions (``statistics``), which
were rounded before they were summed (``rows``, ``clipping``; ``batches`` and
``confidence`` to nearest, which their bounds allow for). So the bounds of
``sensitivity``, with which ``c`` is planned, hold for the whole numbers, and nothing is
rounded later: totals and noise are added modulo ``2**64``, and a noisy whole number is
multiplied by its grid step in float64. Both are post-processing, but for a sum with a
carry: its total is below ``2**62``, and the parameter ``s`` of the noise at most
``2**58``, so the addition wraps around with a probability below 1e-55.

**Theorem.** If the planned fit with continuous noise is (epsilon, delta)-DP, the exact
one is ``(epsilon + 2 xi, exp(xi) delta)``-DP with ``xi = 3e-34`` times the number of
entries that the plan releases, however they depend on each other, sampled or not.
A selection is bounded by the profile of its runs, to each of which this applies.

*Proof.* Let ``g(x) = exp(-x^2 / 8)`` and ``h(y) = sum_j g(j - y)`` over all whole
``j``. By Poisson summation, ``h(y) = sqrt(8 pi) (1 + 2 sum_(n >= 1) exp(-8 pi^2 n^2)
cos(2 pi n y))``, within ``1 +- eta`` of ``sqrt(8 pi)`` for ``eta = 1.1e-34``, at every
``y``. From a continuous release ``y = q + N(0, s^2 - 4)`` of a whole ``q`` draw a whole
``k`` with probability ``g(k - y) / h(y)``. This is post-processing of a release with at
least the planned noise. Two Gaussians convolve to one of variance ``s^2``, so ``k`` has
the probability ``f(k - q) = exp(-(k - q)^2 / (2 s^2)) / (s sqrt(2 pi))`` times a number
between ``1 / (1 + eta)`` and ``1 / (1 - eta)``. The discrete Gaussian around ``q`` has
``f(k - q)`` over ``sum_j f(j)``, which lies in ``[1, 1 + eta]``, by Poisson summation
again as ``s >= 2``. The two probabilities of every ``k`` are within a factor ``exp(+-
3e-34)``. Both laws of ``k - q`` depend on nothing but ``s``, and noise is drawn
independently for every entry: the laws ``P`` (discrete) and ``Q`` of *all* noise of a
fit are within ``exp(+- xi)``. What a fit releases is a function of its data set, all
noise and draws that are the same for both, such as which records are sampled. So for
neighbours ``x`` and ``z`` and a set ``S`` of outcomes, ``P(x in S) <= e^xi Q(x in S) <=
e^xi (e^epsilon Q(z in S) + delta) <= e^(epsilon + 2 xi) P(z in S) + e^xi delta``.

**What pays for it.** Even for ``1e12`` released entries, ``2 xi < 1e-21``: delta at the
stated epsilon grows by less than ``1e-21 + 1e-21 delta``, as its slope is at most one.
That is a relative ``1e-11`` of a delta of at least ``1e-10``, which a plan requires.
The ``conversions`` state a delta that is a relative ``4e-8`` too large, of which their
rounding takes ``2e-8``; ``pld`` takes ``2**-51`` off it for each step, of which its
rounding was measured to need a fifth. So these pay without the relative ``2**-20`` that
most noise, but not that of ``confidence_gap`` and ``score_sensitivity``, has above what
whole sums need (``sensitivity.ROUNDING``). zCDP, and Rényi divergences without
sampling, need no payment: the discrete Gaussian satisfies them, coordinate by
coordinate ([1]_, Theorem 4 and its proof). With sampling the moment of order ``a``
grows by a factor of at most ``exp((2 a - 1) xi)``, as ``P`` and ``Q`` are within
``exp(+- xi)``; ``rdp`` adds ``2**-40 a`` to its logarithm for each sampled step.

References
----------
.. [1] Canonne, Kamath & Steinke. The Discrete Gaussian for Differential Privacy.
   NeurIPS 2020 (arXiv:2004.00010).
.. [2] Haney et al. Precision-based Attacks and Interval Refining: How to Break, then
   Fix, Differential Privacy on Finite Computers. 2022 (arXiv:2207.13793).
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from jaxtyping import Float64, Int64

from privfeat.core.accounting.plan import ReleasePlan
from privfeat.core.noise.discrete import MAX_VARIANCE, discrete_gaussian
from privfeat.core.noise.keys import KeyStream
from privfeat.core.sums.totals import ExactSum, rounded
from privfeat.exceptions import PrivacyError

# The variance ``r^2`` that the proof needs beyond that of the plan.
SMOOTHING = 4


def grid_variance(stddev: float, grid_step: float, *, halved: bool = False) -> int:
    """Return ``s^2``, in squared steps of the grid, for noise of a planned ``stddev``.

    ``stddev``, finite and > 0, and ``grid_step`` are in units of the statistic;
    ``halved`` is for entries off the diagonal of a symmetric matrix. A PrivacyError if
    the noise does not fit the 64 bits of a sum.

    Examples
    --------
    >>> grid_variance(1.5, 0.25), grid_variance(1.5, 0.25, halved=True)
    (40, 22)
    """
    planned = (Fraction(stddev) / Fraction(grid_step)) ** 2 / (2 if halved else 1)
    variance = math.ceil(planned) + SMOOTHING
    if not variance <= MAX_VARIANCE:
        raise PrivacyError(
            "noise must be at most 2**58 units of the grid with arithmetic='exact', "
            f"got a stddev of {stddev:.6g} in units of {grid_step:.6g}. Pass a larger "
            "budget, a smaller max_group_size or arithmetic='float64'."
        )
    return variance


def check_planned(plan: ReleasePlan, grid_step_of: Callable[[str], float]) -> None:
    """Raise PrivacyError, before a fit is charged, if some noise would not fit.

    ``grid_step_of`` returns the grid step of the sums that a query of this name has.
    """
    for each in plan.releases:
        grid_variance(each.noise_stddev, grid_step_of(each.query.name))


def noisy_total(
    keys: KeyStream, exact: ExactSum, stddev: float, *, symmetric: bool
) -> Float64[np.ndarray, "..."]:
    """Return a whole sum plus discrete Gaussian noise, in units of the statistic.

    ``stddev`` is that of `grid_variance`; the sum of a ``symmetric`` matrix stays
    symmetric. Rounded to float64 after the noise. A PrivacyError, before anything
    is drawn, if the total is not int64, or the noise does not fit.
    """
    total, grid_step = np.atleast_1d(exact.total), exact.grid_step
    if total.dtype != np.int64:
        raise PrivacyError(
            f"an exact sum must be of int64 with arithmetic='exact', got {total.dtype}."
        )
    variance = grid_variance(stddev, grid_step)
    if symmetric:
        halved = grid_variance(stddev, grid_step, halved=True)
        noise = _symmetric_noise(keys, len(total), variance, halved)
    else:
        noise = discrete_gaussian(keys, total.shape, variance)
    noisy = rounded(total + noise, exact.carry)
    return np.asarray(noisy * grid_step).reshape(exact.total.shape)


def _symmetric_noise(
    keys: KeyStream, size: int, variance: int, halved: int
) -> Int64[np.ndarray, "d d"]:
    """Return a symmetric matrix whose upper triangle has independent noise."""
    upper = np.triu_indices(size, 1)
    noise = np.zeros((size, size), np.int64)
    noise[upper] = discrete_gaussian(keys, upper[0].shape, halved)
    noise += noise.T
    np.fill_diagonal(noise, discrete_gaussian(keys, (size,), variance))
    return noise
