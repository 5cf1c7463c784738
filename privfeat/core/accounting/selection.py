"""Private selection: what the best of a random number of runs costs.

A run trains a model, scores it, and is ``mu``-GDP as a whole. Only the best run is
released. Because the number of runs is random and hidden, this costs little more than
one run (Liu & Talwar 2019; Papernot & Steinke 2022 [1]_).

References
----------
.. [1] Papernot & Steinke. Hyperparameter Tuning with Renyi Differential Privacy. ICLR
   2022 (arXiv:2110.03620v2). Definition 1, Theorem 2.
.. [2] Koskela, Redberg & Wang. Privacy Profiles for Private Selection. ICML 2024.
"""

import math

import numpy as np
from jaxtyping import Float

from privfeat._checks import check_positive
from privfeat._types import Adjacency
from privfeat.core.accounting.calibration import MIN_DELTA
from privfeat.core.accounting.conversions import (
    MU_RANGE,
    bisect,
    check_delta,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)
from privfeat.core.accounting.run_count import RunCount

# Covers the rounding of everything below; epsilon rounds up, mu down.
SLACK = 1e-9


def selection_epsilon(mu: float, delta: float, runs: RunCount) -> float:
    """Return an epsilon at ``delta`` of the best of ``runs`` ``mu``-GDP runs.

    ``mu``, in [1e-6, 1e6], covers everything that one run outputs, its score included.
    ``delta`` is in [1e-10 E[K], 1): the tails of the noise count in every run.

    Notes
    -----
    **Guarantee.** Let ``D(e)`` be the delta of a run at epsilon ``e``, of each of two
    neighbours against the other, and let ``h >= 0`` satisfy ``(1 - gamma) D(h) <= gamma
    (exp(h) - 1)``. Then for every ``e`` the selection is ``(e + (1 + eta) h, E[K]
    D(e))``-DP.

    **Proof.** Let a run have density ``q`` on outputs, ordered by score and ties by a
    uniform draw, and let ``u(y)`` be the probability of an output above ``y``. The
    best of ``K`` has density ``q(y) f'(1 - u(y))`` with the generating function ``f``
    of ``K``, for which ``f'(1 - u) = E[K] (gamma / (gamma + (1 - gamma)
    u))**(1 + eta)``. On a neighbour, ``q2`` and ``u2 <= exp(h) u + D(h)``, so
    ``gamma + (1 - gamma) u2 <= gamma + (1 - gamma) exp(h) u + gamma (exp(h) - 1) <=
    exp(h) (gamma + (1 - gamma) u)`` and ``f'(1 - u2) >= exp(-(1 + eta) h) f'(1 - u)``.
    Hence with ``E = e + (1 + eta) h`` the integral of the positive part of ``q f'(1 -
    u) - exp(E) q2 f'(1 - u2)`` is at most that of ``f'(1 - u) (q - exp(e) q2)``, at
    most ``E[K] D(e)``. This tightens [1]_ Theorem 2, which goes through Rényi
    divergences, in the manner of [2]_; the tests compare.

    A score of NaN is the worst output. A run that ends with an error is the best: that
    error is what leaves, so outputs stay ordered. The first of equal scores may be
    kept, because the order of independent runs is uniform. Each run draws its candidate
    independently by one public law; the candidate is part of the run's output. Which
    records are held out is drawn once, for all runs and apart from the records: the
    guarantee is an average of bounds. ``h`` and ``e`` grow with ``mu``. What the
    drawing of ``K`` adds to delta: `or_infinite`.

    Examples
    --------
    >>> print(f"{selection_epsilon(0.2, 1e-5, RunCount.from_mean(10, eta=0)):.3f}")
    1.110
    """
    run_delta = check_run_delta(delta, runs) / runs.mean
    extra = bisect(
        lambda h: (
            (1.0 - runs.gamma) * gaussian_delta(mu, h) <= runs.gamma * math.expm1(h)
        ),
        good=-math.log(runs.gamma),  # untried: D <= 1, and the other side is 1 - gamma
        bad=0.0,
    )
    epsilon = gaussian_epsilon(mu, run_delta) + (1.0 + runs.eta) * extra
    return or_infinite(epsilon * (1.0 + SLACK), delta)


def or_infinite(epsilon: float, delta: float, n_selections: int = 1) -> float:
    """Return ``epsilon``, or ``inf`` where numbers of runs are not drawn well enough.

    A number ``K`` is drawn by inversion of 256 bits in 80 digits, within a statistical
    distance of 1e-38 of its law. For each selection that adds ``(1 + exp(epsilon))
    1e-38`` to delta. It is a relative 1e-9 at most, or the epsilon is ``inf``: beyond
    55 at a delta of 1e-5, and 43 at 1e-10. ``conversions`` have more slack than that.
    """
    most = math.log(1e29 * delta / n_selections) - 1e-9
    return epsilon if epsilon <= most else math.inf


def selection_mu(epsilon: float, delta: float, runs: RunCount) -> float:
    """Return the largest mu of a run whose `selection_epsilon` is at most ``epsilon``.

    It is a ValueError if no mu in [1e-6, 1e6] meets the budget. A budget for which
    ``K`` is not drawn well enough gets the mu of the largest for which it is.
    """
    epsilon = check_positive("epsilon", epsilon)
    check_run_delta(delta, runs)
    low, high = MU_RANGE[0], gaussian_mu(epsilon, delta)
    if not selection_epsilon(low, delta, runs) <= epsilon:
        raise ValueError(
            "epsilon and delta must allow a noise multiplier of at most 1e6, got "
            f"epsilon={epsilon!r}, delta={delta!r}. Pass larger ones or fewer runs."
        )
    return (1.0 - SLACK) * bisect(
        lambda mu: selection_epsilon(mu, delta, runs) <= epsilon, good=low, bad=high
    )


def selection_rdp(
    orders: Float[np.ndarray, " o"], mu: float, runs: RunCount
) -> Float[np.ndarray, " o"]:
    """Return Rényi divergences at ``orders`` > 1: [1]_ Theorem 2 for ``mu``-GDP runs.

    Notes
    -----
    With ``rho = mu**2 / 2`` a Gaussian run has divergence ``rho * order``. The bound
    is ``rho order + (1 + eta) ((1 - 1/b) rho b + ln(1/gamma) / b) + ln E[K] / (order -
    1)`` for every ``b >= 1``; ``b = sqrt(ln(1/gamma) / rho)`` is the best.
    """
    rho, log = mu * mu / 2.0, -math.log(runs.gamma)
    b = max(1.0, math.sqrt(log / rho))
    extra = (1.0 + runs.eta) * ((b - 1.0) * rho + log / b)
    return (rho * orders + extra + math.log(runs.mean) / (orders - 1.0)) * (1.0 + SLACK)


def score_sensitivity(adjacency: Adjacency) -> float:
    """Return the sensitivity of the number of correct less incorrect held-out records.

    A record adds 1 or -1: removing it moves the sum by 1, replacing it by at most 2.
    """
    return 1.0 if adjacency == "add_remove" else 2.0


def check_run_delta(delta: float, runs: RunCount) -> float:
    """Return ``delta`` if it is large enough for the noise of all the runs."""
    return check_delta(delta, low=MIN_DELTA * runs.mean)
