"""Least squares with a public prior, from noisy sums."""

import math

import numpy as np

from privfeat.core.noise.release import Release
from privfeat.solvers.prior_scores import Matrix, PriorScores
from privfeat.solvers.spectrum import regularized_inverse


def prior_least_squares(scores: PriorScores, sums: Release, *, ridge: float) -> Matrix:
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
    if (gram := scores.gram) is None:
        raise TypeError("gram must be a release for least squares, got None.")
    stddev, prior = sums.noise_stddev, scores.prior
    total = sums.value - sums.value.mean(axis=0)
    inverse = regularized_inverse(gram, ridge=ridge)
    copies = stddev**2 * (len(prior) - 1)

    def weight_of(prior: Matrix, learned: Matrix, unit: float) -> tuple[float, float]:
        score = float(np.sum(learned * total)) - copies * float(np.trace(inverse))
        error = stddev * math.sqrt(2.0) * float(np.linalg.norm(learned))
        spread = scores.spread(learned) or math.inf
        found = float(np.sum(prior * total)), (score / spread, error / spread)
        return scores.combined(*found, learned, stddev, prior, unit)

    unit, on_prior = scores.records * scores.unit, float(np.sum(prior * total))
    alone = scores.quality(on_prior / unit, stddev * scores.energy**0.5 / unit)
    alone *= scores.best * unit / scores.own
    moved, ridged = (prior @ gram.value) @ inverse.T, total @ inverse.T
    learned = ridged - alone * moved
    weight, part = weight_of(prior, learned, scores.unit)
    drowned = max(weight, alone) * prior + learned
    beside = weight_of(rest := prior - moved, ridged, scores.spread(rest))[0]
    exact = ridged + min(beside, alone) * rest
    of_noise = copies * scores.product(inverse, inverse)
    noise = min(of_noise / max(scores.product(learned, learned), 1e-300), 1.0)
    found = noise * drowned + (1.0 - noise) * exact
    found *= 1.0 - noise * (1.0 - min(part, 1.0))
    return np.asarray(found + (sums.value - total) @ inverse.T)
