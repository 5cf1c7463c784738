"""How often a selection runs: a distribution of whole numbers.

References
----------
.. [1] Papernot & Steinke. Hyperparameter Tuning with Renyi Differential Privacy. ICLR
   2022 (arXiv:2110.03620v2). Definition 1.
"""

import math
from dataclasses import dataclass
from decimal import (
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
    localcontext,
)

from privfeat._checks import check_real
from privfeat.core.accounting.conversions import bisect

# Whatever the thread has set: a trap, of floats say, would end a search that is
# charged.
EIGHTY_DIGITS = Context(
    80, ROUND_HALF_EVEN, traps=[DivisionByZero, InvalidOperation, Overflow]
)


@dataclass(frozen=True)
class RunCount:
    """The truncated negative binomial distribution on 1, 2, ...: [1]_ Definition 1.

    Attributes
    ----------
    eta : float
        Shape, in [-0.5, 10]: 1 is geometric, 0 logarithmic. A smaller one costs less at
        the same mean, and gives a single run more often.
    gamma : float
        In (0, 1); ``P(K = k + 1) / P(K = k) = (1 - gamma) (k + eta) / (k + 1)``.
    """

    eta: float
    gamma: float

    def __post_init__(self) -> None:
        check_real("eta", self.eta, low=-0.5, high=10.0)
        check_real("gamma", self.gamma, low=1e-9, high=1.0, include_high=False)

    @classmethod
    def from_mean(cls, mean: float, eta: float) -> "RunCount":
        """Return the distribution with the given mean, in [1.01, 1000]."""
        mean = check_real("mean_runs", mean, low=1.01, high=1000.0)
        eta = check_real("eta", eta, low=-0.5, high=10.0)
        gamma = bisect(lambda g: cls(eta, g).mean >= mean, good=1e-9, bad=1 - 1e-9)
        return cls(eta, gamma)

    @property
    def mean(self) -> float:
        """``E[K] = eta (1 - gamma) / (gamma (1 - gamma**eta))``, its limit at 0."""
        return (1.0 - self.gamma) / (self.gamma * self._scale(-self.eta))

    def count_at(self, uniform: float | Decimal) -> int:
        """Return the number of runs at a quantile in [0, 1): of a uniform, one draw.

        In 80 decimal digits: of an exact uniform, within a statistical distance of
        1e-38 of the law. It ends where a probability is below 1e-60. From there on each
        is less than ``1 - gamma / 2`` of the one before, so a tail below 1e-50 is lost.
        """
        with localcontext(EIGHTY_DIGITS):
            gamma, eta = Decimal(self.gamma), Decimal(self.eta)
            log = -gamma.ln()
            # nearer to 0 the difference keeps fewer than 40 digits, and the limit 39
            scale = log if abs(eta) < 1e-40 else ((eta * log).exp() - 1) / eta
            probability = (1 - gamma) / scale
            left, count = Decimal(uniform) - probability, 1
            while left > 0 and (count <= self.mean or probability > 1e-60):
                probability *= (1 - gamma) * (count + eta) / (count + 1)
                left, count = left - probability, count + 1
        return count

    def _scale(self, eta: float) -> float:
        """Return ``(gamma**-eta - 1) / eta``; its limit where that underflows.

        ``expm1`` loses no digits near 0, as the difference in `count_at` does.
        """
        log = -math.log(self.gamma)
        return log if abs(eta) < 1e-200 else math.expm1(eta * log) / eta
