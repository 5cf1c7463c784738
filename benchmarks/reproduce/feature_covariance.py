"""DP-FC, Algorithm 4: gradient steps preconditioned by one noisy covariance."""

import math

import numpy as np

from reproduce.accounting import zcdp_rho
from reproduce.problem import clipped_gradients, noisy_symmetric, spectrum, start_of

LABEL, EPOCHS, BIAS = "DP-FC", (1, 10, 100), -10.0


def noise_multiplier(epsilon, delta, n_iter):
    """Return sigma of Theorem 2.3: ``(T + 1) / (2 sigma**2)``-zCDP."""
    return math.sqrt((n_iter + 1) / (2 * zcdp_rho(epsilon, delta)))


def scales(problem, clip_norm, sigma, n_iter):
    """Return the unit in which each parameter is searched."""
    bound = min(clip_norm, problem.radius)
    noise = sigma * bound**2 * math.sqrt(2 * problem.d) / problem.n if sigma else 0.0
    return {
        "learning_rate": problem.m * bound / problem.radius,
        "lam": noise or 1e-4 * bound**2,
    }


def decades(n_iter):
    """Return where the search begins, in decades around the scales."""
    return {"learning_rate": (-1.5, 2.0), "lam": (-2.5, 2.0)}


def fit(problem, trials, *, sigma, n_iter, rng, project=True, bias=BIAS, trained=False):
    """Return coefficients (K, m, d), in the mean form of the paper.

    Parameters
    ----------
    trials : dict of arrays of shape (K,)
        ``clip_norm``, ``learning_rate``, ``lam``, and ``draw``: trials with equal
        clip norm and draw share the noise in the covariance.
    """
    clips, rates = trials["clip_norm"], trials["learning_rate"].astype(np.float32)
    inverses = _inverses(problem, trials, sigma, rng, project)
    coefs, bias = start_of(problem, len(clips), bias, trained)
    stddevs = (sigma / problem.n * clips)[:, None, None] if sigma else None
    for _ in range(n_iter):
        gradients = clipped_gradients(problem, coefs, clips, bias) / problem.n
        if sigma:
            noise = rng.standard_normal(coefs.shape, dtype=np.float32)
            gradients += stddevs.astype(np.float32) * noise
        for coef, gradient, inverse, rate in zip(
            coefs, gradients, inverses, rates, strict=True
        ):
            coef -= rate * (gradient @ inverse)
    return coefs


def _inverses(problem, trials, sigma, rng, project):
    """Return ``(G/n + noise + lam I)^-1`` of each trial: one ``eigh`` a draw."""
    bases, inverses = {}, []
    for clip, draw, lam in zip(
        trials["clip_norm"], trials["draw"], trials["lam"], strict=True
    ):
        if (clip, draw) not in bases:
            matrix = problem.gram(float(clip)) / np.float32(problem.n)
            if sigma:
                stddev = sigma * clip**2 / problem.n
                matrix = noisy_symmetric(matrix, stddev, rng, project=False)
            if project:
                values, vectors = spectrum(matrix)
                bases[clip, draw] = np.maximum(values, 0), vectors
            else:
                bases[clip, draw] = matrix
        if project:
            values, vectors = bases[clip, draw]
            inverses.append((vectors / (values + np.float32(lam))) @ vectors.T)
        else:
            diagonal = np.float32(lam) * np.eye(problem.d, dtype=np.float32)
            inverses.append(np.linalg.inv(bases[clip, draw] + diagonal))
    return inverses
