"""AdaSSP and Hessian mixing, for rows of norm at most 1 and targets in [-1, 1].

Simulations for comparison: not hardened, never for private records. Both are given what
their papers suppose: neighbours differ in one record, added or removed; no intercept.

- AdaSSP: Wang, Revisiting Differentially Private Linear Regression, UAI 2018,
  Algorithm 2.
- Iterative Hessian mixing: Lev, Shenfeld, Srinivasan, Ligett and Wilson, Near-Optimal
  Private Linear Regression via Iterative Hessian Mixing, 2026, arXiv:2601.07545, with
  the parameters of their code: 3 steps, sketches of ``6 max(d, log(4 T / varrho))``
  rows with ``varrho = delta / 10``.

Each has two budgets. ``"published"`` is that of the paper or its code. ``"tight"``
spends the same (epsilon, delta) without their slack: AdaSSP by the exact curve of three
composed Gaussians, as privfeat accounts; mixing by one Rényi curve of all its parts.
"""

import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from privfeat.core.accounting.conversions import gaussian_epsilon

# Probability with which the bound on the noise of AdaSSP's ridge may fail.
FAILURE = 0.05


def largest_mu(epsilon, delta):
    """Return the mu of Gaussian DP that (epsilon, delta) allows."""
    return brentq(lambda mu: gaussian_epsilon(mu, delta) - epsilon, 1e-5, 100.0)


def adassp(X, y, epsilon, delta, rng, budget="tight"):
    """Return the coefficients, (n_features,)."""
    d = X.shape[1]
    shift = math.sqrt(math.log(6.0 / delta))
    if budget == "published":  # three classical Gaussians of (epsilon/3, delta/3)
        noise = 3.0 * shift / epsilon
    else:
        noise = math.sqrt(3.0) / largest_mu(epsilon, delta)
    gram = X.T @ X
    smallest = np.linalg.eigvalsh(gram)[0] + noise * (rng.normal() - shift)
    ridge = noise * math.sqrt(d * math.log(2.0 * d**2 / FAILURE)) - max(smallest, 0.0)
    upper = np.triu(rng.normal(size=(d, d)))
    gram += noise * (upper + np.triu(upper, 1).T) + max(ridge, 0.0) * np.eye(d)
    return np.linalg.solve(gram, X.T @ y + noise * rng.normal(size=d))


def hessian_mixing(X, y, epsilon, delta, rng, budget="tight", n_steps=3):
    """Return the coefficients, (n_features,)."""
    d = X.shape[1]
    varrho = delta / 10.0
    n_rows = int(6 * max(d, math.log(4 * n_steps / varrho)))
    if budget == "published":  # half of epsilon to the sketches, half to the gradients
        noise = math.sqrt(n_steps) / largest_mu(epsilon / 2, delta / 4)
        gamma = _gamma(epsilon / 2, delta / 4, n_rows, n_steps, published=True)
    else:
        mu = largest_mu(epsilon, delta) / math.sqrt(2.0)
        noise = math.sqrt(n_steps) / mu
        gamma = _gamma(epsilon, delta, n_rows, n_steps, gradient_mu=mu)
    gram = X.T @ X
    failing = math.sqrt(2.0 * math.log(max(4.0 / delta, 4.0 / varrho)))
    smallest = np.linalg.eigvalsh(gram)[0]
    smallest += gamma / math.sqrt(n_rows) * (rng.normal() - failing)
    added = max(gamma - max(smallest, 0.0), 0.0)
    # a row of the sketch is normal with this covariance
    root = np.linalg.cholesky(gram + (added + 1e-12) * np.eye(d))
    coef = np.zeros(d)
    for _ in range(n_steps):
        sketch = rng.normal(size=(n_rows, d)) @ root.T
        gradient = X.T @ np.clip(y - X @ coef, -1.0, 1.0) + noise * rng.normal(size=d)
        coef += np.linalg.solve(sketch.T @ sketch / n_rows, gradient)
    return coef


def _gamma(epsilon, delta, n_rows, n_steps, *, gradient_mu=0.0, published=False):
    """Return the least eigenvalue that makes sketches and eigenvalue private enough.

    The Rényi divergence of a sketch of ``k`` rows, of order ``a`` below ``gamma``, is
    ``k / (2 (a - 1)) (a log(1 - 1 / gamma) - log(1 - a / gamma))``.
    """
    log = math.log

    def spent(a, gamma):
        sketch = a * math.log1p(-1.0 / gamma) - math.log1p(-a / gamma)
        found = n_steps * n_rows / (2.0 * (a - 1.0)) * sketch
        if published:  # the eigenvalue by the classical Gaussian, its epsilon added
            found += math.sqrt(2.0 * log(1.25 / delta) * n_rows) / gamma
        else:
            found += a / 2.0 * (n_rows / gamma**2 + gradient_mu**2)
        # the conversion of Canonne, Kamath and Steinke 2020, Proposition 12
        return found + math.log1p(-1.0 / a) - (log(delta) + log(a)) / (a - 1.0)

    def excess(log_gamma):
        gamma = math.exp(log_gamma)
        # the divergence is convex in log(a - 1) where it matters
        found = minimize_scalar(
            lambda t: spent(1.0 + math.exp(t), gamma),
            bounds=(-6.0, math.log(0.999 * gamma - 1.0)),
            method="bounded",
        )
        return found.fun - epsilon

    return math.exp(brentq(excess, math.log(1.5), math.log(1e9), xtol=1e-4))
