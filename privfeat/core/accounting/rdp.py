"""Rényi differential privacy (RDP) at whole and fractional orders, by dp-accounting.

Most papers account so. The epsilon is a few percent above that of ``pld``, and takes
milliseconds whatever the noise.

References
----------
.. [1] Mironov. Rényi Differential Privacy. CSF 2017. Propositions 1 (composition), 7.
.. [2] Mironov, Talwar & Zhang. Rényi Differential Privacy of the Sampled Gaussian
   Mechanism. 2019. Theorem 4, Section 3.3.
.. [3] Canonne, Kamath & Steinke. The Discrete Gaussian for Differential Privacy.
   NeurIPS 2020. Proposition 12 of the version on arXiv.
.. [4] Wang, Balle & Kasiviswanathan. Subsampled Rényi Differential Privacy and
   Analytical Moments Accountant. AISTATS 2019. Corollary 10.
"""

import logging
import math
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from privfeat.core.accounting import conversions as convert
from privfeat.core.accounting.loss_grid import parts
from privfeat.exceptions import UnsupportedEventError

if TYPE_CHECKING:
    from dp_accounting import DpEvent

# dp-accounting converts no order of 1.01 or less. Without sampling an order costs
# nothing; with it, as many terms as a whole order is large, or a series.
_FREE = 1.0 + np.geomspace(0.0101, 1e6, 401)
_WHOLE = np.array([*range(2, 33), 36, 40, 48, 64, 96, 128, 256, 512, 1024], float)
_SAMPLED = np.union1d(_WHOLE, 1.0 + np.geomspace(0.05, 10.0, 31))
# What a logarithm of a moment may have lost in one sampled step: so much of it, and so
# much for each unit of the order. Measured at 550 points against 50 digits, orders
# from 1.02 to 1,024: 2**-52 of it, 2**-50 a unit. Series break off at exp(-30).
_LOST = 2.0**-40


def rdp_epsilon(event: "DpEvent", delta: float) -> float:
    """Return the least epsilon at ``delta`` that Rényi divergences prove, rounded up.

    ``event`` is made of Gaussian releases, of all records or of Poisson samples; it may
    be that of a statement: ``rdp_epsilon(clf.privacy_.event(), 1e-5)``. Neighbours as
    of `pld_epsilon`. Another event is an UnsupportedEventError.

    Notes
    -----
    Without sampling the divergence of order ``a`` is ``a mu**2 / 2`` ([1]_ Proposition
    7), and epsilon the least ``a mu**2 / 2 + log(1 - 1/a) - log(delta a) / (a - 1)``
    ([3]_) over the orders, each of which is a bound.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent
    >>> print(f"{rdp_epsilon(GaussianDpEvent(3.730632), 1e-5):.4f}")
    1.0924
    """
    orders = _SAMPLED if _sampled_steps(event) else _FREE
    return epsilon_of_divergences(orders, divergences_of(event, orders), delta)


def divergences_of(
    event: "DpEvent", orders: Float[np.ndarray, " o"]
) -> Float[np.ndarray, " o"]:
    """Return bounds on the Rényi divergences at rising orders > 1, rounded up.

    Notes
    -----
    At a fractional order of a sampled release dp-accounting sums the series of [2]_
    Section 3.3. It adds the size of each term, whatever its sign: so the sum is a
    bound. It breaks off at terms below ``exp(-30)`` of the sum, which leaves out less
    than ``_LOST``, or returns ``inf``. Another bound is the chord between whole
    orders, since ``(a - 1) D_a``, the logarithm of a moment, is convex in ``a`` and 0
    at 1 ([4]_).
    The lesser is taken, and what each sampled step may have lost is added.
    """
    from dp_accounting import rdp

    accountant = rdp.RdpAccountant(orders)
    if not accountant.supports(event):
        raise UnsupportedEventError(f"event must be supported by RDP, got {event!r}.")
    log = logging.getLogger("absl")
    log.addFilter(_is_of_others)
    try:
        moments = (orders - 1.0) * accountant.compose(event).rdp
    finally:
        log.removeFilter(_is_of_others)
    whole = orders % 1.0 == 0.0
    x, y = [1.0, *orders[whole]], [0.0, *moments[whole]]
    # beyond the last whole order there is no chord; at whole ones NaN stays NaN
    chords = np.where(whole, moments, np.interp(orders, x, y, right=np.inf))
    moments = np.minimum(moments, chords)
    moments = moments * (1.0 + _LOST) + _sampled_steps(event) * _LOST * orders
    bounds: Float[np.ndarray, " o"] = moments / (orders - 1.0)
    return bounds


def _sampled_steps(event: "DpEvent") -> int:
    from dp_accounting import PoissonSampledDpEvent

    return sum(
        count for part, count in parts(event) if isinstance(part, PoissonSampledDpEvent)
    )


def _is_of_others(record: logging.LogRecord) -> bool:
    """Return whether a warning is not that a series does not converge."""
    return "_compute_log_a_frac" not in record.getMessage()


def epsilon_of_divergences(
    orders: Float[np.ndarray, " o"], divergences: Float[np.ndarray, " o"], delta: float
) -> float:
    """Return the epsilon at ``delta`` of Rényi divergences; ``inf`` if one is not > 0.

    Of divergences that were rounded away dp-accounting would make an epsilon of 0.
    """
    from dp_accounting import rdp

    if not np.all(divergences > 0.0):
        return math.inf
    found = rdp.compute_epsilon(orders, divergences, convert.check_delta(delta))
    epsilon = float(found[0]) * (1.0 + 1e-12)
    return epsilon if epsilon >= 0.0 else math.inf  # NaN: fail closed


def rdp_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu of a Gaussian release that costs at most ``epsilon``.

    By `rdp_epsilon`, to a relative 1e-9, rounded down: the mu that is returned was
    tried. ``epsilon`` is finite and > 0. It is a ValueError if the mu is out of range.

    Notes
    -----
    No bound costs less than the exact curve, whose mu is the other end of the search.
    At half the mu of zCDP, which has a quarter of its divergences, the orders above
    suffice from epsilon 1e-3 to 1e4; elsewhere it is a ValueError.
    """
    from dp_accounting import GaussianDpEvent

    def affordable(mu: float) -> bool:
        return rdp_epsilon(GaussianDpEvent(1.0 / mu), delta) <= epsilon

    low = convert.mu_from_rho(convert.zcdp_rho(epsilon, delta)) / 2.0
    high = convert.gaussian_mu(epsilon, delta) * (1.0 + 1e-6)
    if not affordable(low):
        raise ValueError(
            "epsilon and delta must be in reach of Rényi divergences of orders up to "
            f"1e6, got epsilon={epsilon!r}, delta={delta!r}. Pass accounting='exact'."
        )
    return convert.bisect(affordable, good=low, bad=high, tol=1e-9)
