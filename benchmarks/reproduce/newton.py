"""DP-Newton, Algorithm 2: a noisy gradient and Hessian block a class and step."""

import math

import numpy as np

from reproduce.accounting import zcdp_rho
from reproduce.least_squares import solve_system
from reproduce.problem import noisy_symmetric, sigmoid

CACHE_BYTES = 2**20
LABEL, EPOCHS = "DP-Newton", (1, 10, 100)


def noise_multiplier(epsilon, delta, n_iter):
    """Return sigma of Theorem 2.1: ``T / sigma**2``-zCDP."""
    return math.sqrt(n_iter / zcdp_rho(epsilon, delta))


def scales(problem, clip_norm, sigma, n_iter):
    """Return the unit in which each parameter is searched; ``lam`` in sums."""
    bound = min(clip_norm, problem.radius)
    spread = math.sqrt(2 * problem.d * problem.m)
    noise = sigma * bound**2 / 4 * spread if sigma else 0.0
    return {"lam": noise or 1e-4 * problem.n * bound**2, "learning_rate": 1.0}


def decades(n_iter):
    """Return where the search begins, in decades around the scales."""
    return {"lam": (-2.0, 2.0), "learning_rate": (-1.0, 0.5)}


def fit(problem, trials, *, sigma, n_iter, rng, project=True):
    """Return coefficients (K, m, d); Hessians at zero are shared by a draw's trials."""
    clips, draws = trials["clip_norm"], trials["draw"]
    coefs = np.zeros((len(clips), problem.m, problem.d), np.float32)
    root = math.sqrt(problem.m) * sigma if sigma else 0.0
    for clip, draw in sorted(set(zip(clips, draws, strict=True))):
        members = np.flatnonzero((clips == clip) & (draws == draw))
        noise = {"stddev": root and root * clip**2 / 4, "project": project}
        rows = problem.clipped(float(clip))
        start = problem.gram(float(clip)) / np.float32(4)
        sums = rows.sum(axis=0) / 2 - problem.class_sums(float(clip))
        for step in range(n_iter):
            shared = None
            for label in range(problem.m):
                if step == 0:
                    shared = _noisy(start, rng, **noise)
                for k in members:
                    coef = coefs[k, label]
                    gradient, hessian = sums[label].copy(), shared
                    if step:
                        gradient, hessian = _derivatives(rows, coef, problem.y == label)
                        hessian = _noisy(hessian, rng, **noise)
                    if root:
                        drawn = rng.standard_normal(problem.d, dtype=np.float32)
                        gradient += np.float32(root * clip) * drawn
                    lam = np.float32(trials["lam"][k])
                    matrix = hessian + lam * np.eye(problem.d, dtype=np.float32)
                    move = solve_system(matrix, gradient, positive=project)
                    coef -= np.float32(trials["learning_rate"][k]) * move
    return coefs


def _derivatives(rows, coef, target):
    """Return gradient and Hessian, of a block of rows that fits the cache at a time."""
    gradient = np.zeros_like(coef)
    hessian = np.zeros((len(coef), len(coef)), np.float32)
    size = max(256, CACHE_BYTES // (4 * len(coef)))
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        p = sigmoid(part @ coef)
        gradient += (p - target[start : start + size]).astype(np.float32) @ part
        part = part * np.sqrt(p * (1 - p))[:, None]
        hessian += part.T @ part
    return gradient, hessian


def _noisy(exact, rng, *, stddev, project):
    if not stddev:
        return exact
    return noisy_symmetric(exact, stddev, rng, project=project)
