"""Gaussian DP by the central limit: the epsilon that some papers state.

It is an **approximation**, often below the truth ([2]_), which no statement, plan or
ledger of privfeat uses. It serves to compare with papers that account by it ([3]_).

References
----------
.. [1] Bu, Dong, Long & Su. Deep Learning with Gaussian Differential Privacy. Harvard
   Data Science Review, 2020. Corollary 4: ``mu = p sqrt(T (exp(1/sigma^2) - 1))``.
.. [2] Gopi, Lee & Wutschitz. Numerical Composition of Differential Privacy. NeurIPS
   2021. Section 1.
.. [3] Bu et al. On the Convergence and Calibration of Deep Learning with Differential
   Privacy. TMLR 2023.
"""

import math
from collections.abc import Iterable

from privfeat.core.accounting.conversions import MU_RANGE, check_delta, gaussian_epsilon
from privfeat.core.accounting.plan import ReleaseRecord

_LARGEST_EXPONENT = 700.0


def central_limit_mu(releases: Iterable[ReleaseRecord]) -> float:
    """Return the Gaussian-DP parameter of releases, by the central limit: [1]_.

    They are those of a statement (``privacy_.releases``) or a plan (``records``). Those
    that see all records are exact. Without noise, or with next to none, it is ``inf``.
    """
    squares = []
    for release in releases:
        square, prob = math.inf, release.sampling_prob
        if release.noise_multiplier > 0.0:
            inverse = 1.0 / release.noise_multiplier
            square = inverse * inverse
        if prob < 1.0:
            large = square > _LARGEST_EXPONENT
            square = math.inf if large else prob * prob * math.expm1(square)
        squares.append(release.planned().query.participations * square)
    return math.sqrt(math.fsum(squares))


def central_limit_epsilon(releases: Iterable[ReleaseRecord], delta: float) -> float:
    """Return about the epsilon at ``delta`` of releases: **no guarantee**.

    See `central_limit_mu`.

    >>> wine = ReleaseRecord("gradient", 2000, 1.0, 35.0, 35.0, 1.0)
    >>> print(f"{central_limit_epsilon([wine], 1 / (1.1 * 1279)):.2f}")
    4.40
    """
    mu, delta = central_limit_mu(releases), check_delta(delta)
    if not mu <= MU_RANGE[1]:
        return math.inf
    return gaussian_epsilon(max(mu, MU_RANGE[0]), delta)
