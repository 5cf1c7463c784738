"""DP-LS, Algorithm 3: least squares from noisy sums, with a Gram matrix a class."""

import math

import numpy as np
from scipy.linalg.lapack import sposv

from reproduce.accounting import zcdp_rho
from reproduce.problem import noisy_symmetric

LABEL, EPOCHS = "DP-LS", (1,)


def noise_multiplier(epsilon, delta, n_iter):
    """Return sigma of Theorem 2.2: ``3 / (2 sigma**2)``-zCDP."""
    return math.sqrt(3 / (2 * zcdp_rho(epsilon, delta)))


def scales(problem, clip_norm, sigma, n_iter):
    """Return the unit in which each parameter is searched; sums, as printed."""
    bound = min(clip_norm, problem.radius)
    noise = sigma * bound**2 * math.sqrt(2 * problem.d) if sigma else 0.0
    return {"lam": noise or 1e-4 * problem.n * bound**2, "alpha": 1.0}


def decades(n_iter):
    """Return where the search begins, in decades around the scales."""
    return {"lam": (-2.0, 2.0), "alpha": (-3.0, 2.0)}


def fit(problem, trials, *, sigma, n_iter, rng, project=True):
    """Return coefficients (K, m, d).

    Trials with equal ``clip_norm`` and ``draw`` share all noise: what differs between
    them is computed from the released sums.
    """
    clips, draws = trials["clip_norm"], trials["draw"]
    coefs = np.zeros((len(clips), problem.m, problem.d), np.float32)
    identity = np.eye(problem.d, dtype=np.float32)
    for clip, draw in sorted(set(zip(clips, draws, strict=True))):
        members = np.flatnonzero((clips == clip) & (draws == draw))
        noise = {"rng": rng, "project": project}
        stddev = sigma * clip**2 if sigma else 0.0
        gram = problem.gram(float(clip))
        if sigma:
            gram = noisy_symmetric(gram, stddev, **noise)
        sums = problem.class_sums(float(clip)).copy()
        if sigma:
            drawn = rng.standard_normal(sums.shape, dtype=np.float32)
            sums += np.float32(sigma * clip) * drawn
        for label in range(problem.m):
            block = problem.class_gram(label, clip)
            if sigma:
                block = noisy_symmetric(block, stddev, **noise)
            for k in members:
                alpha, lam = np.float32([trials["alpha"][k], trials["lam"][k]])
                matrix = block + alpha * gram + lam * identity
                coefs[k, label] = solve_system(matrix, sums[label], positive=project)
    return coefs


def solve_system(matrix, vector, *, positive):
    """Return the solution, or zeros where there is none."""
    if positive:
        solution, info = sposv(matrix, vector)[1:]
        return np.zeros_like(vector) if info else solution
    try:
        return np.linalg.solve(matrix, vector)
    except np.linalg.LinAlgError:
        return np.zeros_like(vector)
