"""Conversions between (epsilon, delta), rho, mu and the noise multiplier.

A Gaussian release with L2 sensitivity ``D`` and noise stddev ``s`` has noise multiplier
``s / D``, ``mu = D / s`` (Gaussian DP) and ``rho = mu**2 / 2`` (zCDP). Adaptive
composition adds ``rho``, hence ``mu**2`` ([2]_, [3]_). Conversions to or from epsilon
and delta round against the user: epsilon and delta up, mu and rho down. Those between
``rho`` and ``mu`` round to nearest; ``calibration`` adds more noise than that. For
epsilon and delta of a Gaussian release ``mu`` is in [1e-6, 1e6]; ``delta`` is in
[1e-100, 1) everywhere. Another value is an error.

References
----------
.. [1] Balle & Wang. Improving the Gaussian Mechanism for Differential Privacy:
   Analytical Calibration and Optimal Denoising. ICML 2018. Theorem 8.
.. [2] Dong, Roth & Su. Gaussian Differential Privacy. JRSS-B 2022. Corollaries 1, 2.
.. [3] Bun & Steinke. Concentrated Differential Privacy. TCC 2016. Proposition 1.3
   (conversion), Proposition 1.6 (Gaussian), Lemma 1.7 (composition).
"""

import math
from collections.abc import Callable

from scipy.special import erfcx, ndtr

from privfeat._checks import check_positive, check_real

# Relative slack that covers the rounding of `gaussian_delta`, below 2e-8: for mu >=
# 1e-6 the difference of two erfcx values loses log10(1 / mu) digits. Measured, not
# proved, at 12,000 points against 60 digits: 9.3e-9. Others take from the rest, at the
# smallest delta: numbers of runs 1e-9 (``selection``), discrete noise 1e-11 (``exact``,
# of 1e12 numbers), ends of other noise 2e-11 at an epsilon of 20 (``draws``).
_SLACK = 4e-8
MU_RANGE = (1e-6, 1e6)


def rho_from_mu(mu: float) -> float:
    """Return the zCDP parameter ``mu**2 / 2`` of a ``mu``-GDP Gaussian release."""
    return mu * mu / 2.0


def mu_from_rho(rho: float) -> float:
    """Return the Gaussian-DP parameter ``sqrt(2 rho)``."""
    return math.sqrt(2.0 * rho)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the smallest delta of a Gaussian release at a finite ``epsilon >= 0``.

    ``Phi(-epsilon/mu + mu/2) - exp(epsilon) Phi(-epsilon/mu - mu/2)``, [1]_, rounded up
    by a relative 4e-8.

    Notes
    -----
    With ``a = epsilon/mu - mu/2`` and ``b = epsilon/mu + mu/2``, ``b**2 - a**2 = 2
    epsilon``, so the second term is ``exp(-a**2 / 2) erfcx(b / sqrt 2) / 2``, which
    neither overflows nor cancels against a rounded ``exp(epsilon)``.

    Examples
    --------
    >>> print(f"{gaussian_delta(1 / 3.730632, 1.0):.3e}")
    1.000e-05
    """
    mu = check_real("mu", mu, low=MU_RANGE[0], high=MU_RANGE[1])
    epsilon = check_real("epsilon", epsilon, low=0.0, include_high=False)
    a, b = epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0
    root2 = math.sqrt(2.0)
    if a > 0:
        tail = 0.5 * math.exp(-a * a / 2.0)
        delta = tail * float(erfcx(a / root2) - erfcx(b / root2))
    else:
        tail = 0.5 * math.exp(-a * a / 2.0) * float(erfcx(b / root2))
        delta = float(ndtr(-a)) - tail
    return min(1.0, delta * (1.0 + _SLACK))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon at ``delta`` of a Gaussian release, rounded up.

    ``gaussian_delta`` falls in epsilon. Bisection returns the end at which delta is
    small enough. It begins at that of zCDP, which needs no trial: delta there is at
    most half of ``delta``, as a normal tail beyond ``x`` is at most ``exp(-x**2/2)/2``.

    Examples
    --------
    >>> print(f"{gaussian_epsilon(1 / 3.730632, 1e-5):.6f}")
    1.000000
    """
    delta = check_delta(delta)
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    high = zcdp_epsilon(rho_from_mu(mu), delta)
    return bisect(lambda eps: gaussian_delta(mu, eps) <= delta, good=high, bad=0.0)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu that is (epsilon, delta)-DP, rounded down.

    ``epsilon`` is finite and > 0. It is a ValueError if the mu is out of range.

    Examples
    --------
    >>> print(f"{1 / gaussian_mu(1.0, 1e-5):.6f}")
    3.730632
    """
    low = mu_from_rho(zcdp_rho(epsilon, delta))
    if not MU_RANGE[0] <= low <= MU_RANGE[1] / 4:
        raise ValueError(
            f"epsilon and delta must allow a noise multiplier in [1e-6, 1e6], got "
            f"epsilon={epsilon!r}, delta={delta!r}. "
            + (
                "Pass a larger epsilon or delta."
                if low < 1.0
                else "Pass a smaller epsilon, or epsilon=inf for no privacy."
            )
        )
    high = low
    while gaussian_delta(high, epsilon) <= delta:
        low, high = high, 2.0 * high  # beyond 1e6, `gaussian_delta` refuses
    return bisect(lambda mu: gaussian_delta(mu, epsilon) <= delta, good=low, bad=high)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return ``rho + 2 sqrt(rho ln(1/delta))``, [3]_ Proposition 1.3, rounded up.

    Examples
    --------
    >>> print(f"{zcdp_epsilon(0.5, 1e-5):.6f}")
    5.298526
    """
    rho = check_positive("rho", rho)
    log_term = -math.log(check_delta(delta))
    return (rho + 2.0 * math.sqrt(rho * log_term)) * (1.0 + 1e-12)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho whose ``zcdp_epsilon`` is at most ``epsilon``.

    The root of ``rho + 2 sqrt(rho L) = epsilon`` is ``(sqrt(L + epsilon) - sqrt
    L)**2``, here without the cancellation and rounded down.
    """
    epsilon = check_positive("epsilon", epsilon)
    log_term = -math.log(check_delta(delta))
    root = epsilon / (math.sqrt(log_term + epsilon) + math.sqrt(log_term))
    return root * root * (1.0 - 4e-12)


def check_delta(delta: float, low: float = 1e-100) -> float:
    """Return ``delta`` as a float if it is in [low, 1).

    Below 1e-100 `gaussian_delta` would meet subnormal numbers and round down.
    """
    remedy = "Pass a probability such as 1e-5."
    return check_real(
        "delta", delta, low=low, high=1.0, include_high=False, remedy=remedy
    )


def bisect(
    is_good: Callable[[float], bool], *, good: float, bad: float, tol: float = 1e-12
) -> float:
    """Return the good end of a bracket narrowed to a relative width of ``tol``."""
    while abs(good - bad) > tol * abs(good):
        middle = 0.5 * (good + bad)
        if middle in (good, bad):
            break
        if is_good(middle):
            good = middle
        else:
            bad = middle
    return good
