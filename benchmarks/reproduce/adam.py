"""DP-Adam, Algorithm 1: Adam on noisy full-batch gradients."""

import math

import numpy as np

from reproduce.accounting import renyi_rho
from reproduce.problem import clipped_gradients, start_of

LABEL, EPOCHS, BIAS = "DP-Adam", (1, 10, 100), -10.0
DECAYS, TINY = (0.9, 0.999), 1e-8


def noise_multiplier(epsilon, delta, n_iter):
    """Return sigma of T full-batch steps, by the accountant of Appendix B.1."""
    return math.sqrt(n_iter / (2 * renyi_rho(epsilon, delta)))


def scales(problem, clip_norm, sigma, n_iter):
    """Return the unit in which each parameter is searched."""
    bound = min(clip_norm, problem.radius)
    return {
        "learning_rate": 1 / (problem.radius * n_iter),
        "lam": bound * problem.radius,
    }


def decades(n_iter):
    """Return where the search begins, in decades around the scales."""
    return {"learning_rate": (-0.5, 2.5), "lam": (-7.0, 0.0)}


def fit(problem, trials, *, sigma, n_iter, rng, project=True, bias=BIAS, trained=False):
    """Return coefficients (K, m, d); ``lam / 2 norm(coef)**2`` is in the objective.

    A bias is part of the objective, if it is ``trained``, but not of the norm.
    """
    clips = trials["clip_norm"]
    rates = trials["learning_rate"].astype(np.float32)[:, None, None]
    lams = trials["lam"].astype(np.float32)[:, None, None]
    coefs, bias = start_of(problem, len(clips), bias, trained)
    stddevs = (sigma / problem.n * clips)[:, None, None] if sigma else None
    first, second = np.zeros_like(coefs), np.zeros_like(coefs)
    for step in range(1, n_iter + 1):
        gradients = clipped_gradients(problem, coefs, clips, bias) / problem.n
        if sigma:
            noise = rng.standard_normal(coefs.shape, dtype=np.float32)
            gradients += stddevs.astype(np.float32) * noise
        shrunk = coefs[:, :, :-1] if trained else coefs
        gradients[:, :, : shrunk.shape[2]] += lams * shrunk
        first += np.float32(1 - DECAYS[0]) * (gradients - first)
        second += np.float32(1 - DECAYS[1]) * (gradients**2 - second)
        corrected = np.sqrt(second / np.float32(1 - DECAYS[1] ** step))
        rise = first / np.float32(1 - DECAYS[0] ** step)
        coefs -= rates * rise / (corrected + np.float32(TINY))
    return coefs
