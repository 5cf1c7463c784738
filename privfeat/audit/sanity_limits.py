"""How much of random labels a fit of a stated cost may remember: the limits of tests.

Let the label of a user, or of the images of a pattern, be uniform among ``k`` classes
and independent of all else. A model fitted without that user predicts it with
probability ``1/k``. Fitted with the user, the probability is at most ``p =
Phi(Phi^-1(1/k) + mu)`` if the fit is ``mu``-GDP, and at most ``exp(epsilon)/k + delta``
otherwise: [1]_, Definition 2.1 bounds the probability of every event by that of the
neighbour, and the bound is concave, so it holds on average over labels. So the mean
share of labels that a fit predicts is at most ``p``, also where its records depend on
each other, and the mean over ``n`` independent fits exceeds ``t > p`` with probability
at most ``exp(-n KL(t, p))``, [2]_.

References
----------
.. [1] Dong, Roth & Su. Gaussian Differential Privacy. JRSS-B 2022.
.. [2] Hoeffding. Probability Inequalities for Sums of Bounded Random Variables. JASA
   1963. Theorem 1.
"""

import math
from typing import Any

from scipy import special, stats

from privfeat._checks import check_between, check_real
from privfeat.core.accounting.conversions import bisect


def allowed_rate(model: Any, mu: float | None, per_user: int, chance: float) -> float:
    """Return the probability that a fit may give to an event of probability ``chance``.

    Where records are protected one by one, all ``per_user`` of a user count: ``mu`` is
    linear in their number, [1]_ Theorem 2.14.
    """
    if mu is not None:
        mu = check_real("mu", mu, low=0.0, include_high=False)
        return float(special.ndtr(special.ndtri(chance) + mu)) if mu else chance
    stated = getattr(model, "privacy_", None)
    if stated is None or not math.isfinite(stated.epsilon):
        return chance
    group = 1 if stated.unit == "user" else per_user
    if stated.mu is not None:
        return float(special.ndtr(special.ndtri(chance) + group * stated.mu))
    epsilon, delta = stated.epsilon, stated.delta
    if group * epsilon > 100.0:
        return 1.0
    delta *= group * math.exp((group - 1) * epsilon)
    return float(min(1.0, math.exp(group * epsilon) * chance + delta))


def mean_limit(rate: float, n_fits: int, allowed: float) -> float:
    """Return what the mean of ``n_fits`` fits exceeds with probability ``rate``."""
    check_between("rate", rate, 0.0, 1.0)
    if not allowed**n_fits < rate:
        raise ValueError(
            f"rate must leave a test that can fail, got {rate!r} for {n_fits} fits, "
            f"which may succeed with probability {allowed:.3g} at their stated cost. "
            "Pass a larger rate, more fits, or a smaller epsilon."
        )

    def unlikely(mean: float) -> bool:
        divergence = special.rel_entr(mean, allowed)
        divergence += special.rel_entr(1.0 - mean, 1.0 - allowed)
        return bool(math.exp(-n_fits * divergence) <= rate)

    return bisect(unlikely, good=1.0, bad=allowed)


def chance_limit(rate: float, n_draws: int, n_classes: int) -> float:
    """Return the share of right guesses that chance exceeds at ``rate``."""
    check_between("rate", rate, 0.0, 1.0)
    limit = float(stats.binom.isf(rate, n_draws, 1.0 / n_classes)) / n_draws
    if not limit < 1.0:
        raise ValueError(
            f"rate must leave a test that can fail, got {rate!r} for {n_draws} draws. "
            "Pass a larger one, or more fits or samples."
        )
    return limit
