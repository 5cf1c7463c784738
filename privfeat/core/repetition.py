"""How often a selection runs, at random, and how a statement describes it.

References
----------
.. [1] Papernot & Steinke. Hyperparameter Tuning with Renyi Differential Privacy. ICLR
   2022 (arXiv:2110.03620v2). Definition 1.
"""

import math
from dataclasses import dataclass
from typing import Literal

from dp_accounting import DpEvent, GaussianDpEvent, NonPrivateDpEvent
from dp_accounting.dp_event import RepeatAndSelectDpEvent

from privfeat._checks import check_choice, check_real
from privfeat.core import noise
from privfeat.core.accounting import bisect
from privfeat.core.keys import KeyStream
from privfeat.core.rounding import rounded_up
from privfeat.exceptions import UnsupportedEventError

SCORED_ON = {
    "holdout": "records kept from training, with noise",
    "public": "public data",
}


@dataclass(frozen=True)
class RunCount:
    """The truncated negative binomial distribution on 1, 2, ...: [1]_ Definition 1.

    Attributes
    ----------
    eta : float
        Shape, in [-0.5, 10]: 1 is geometric, 0 logarithmic. Smaller is cheaper at the
        same mean, and more often just one run.
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

    def draw(self, keys: KeyStream) -> int:
        """Return one draw, by inversion of a uniform of 52 bits. Sensitive."""
        probability = (1.0 - self.gamma) / self._scale(self.eta)
        left, count = noise.uniform(keys.draw_noise_key()) - probability, 1
        while left > 0.0 and (count <= self.mean or probability > 1e-18):
            probability *= (1.0 - self.gamma) * (count + self.eta) / (count + 1)
            left, count = left - probability, count + 1
        return count

    def _scale(self, eta: float) -> float:
        """Return ``(gamma**-eta - 1) / eta``; its limit where that underflows."""
        log = -math.log(self.gamma)
        return log if abs(eta) < 1e-200 else math.expm1(eta * log) / eta


@dataclass(frozen=True)
class Selection:
    """How a released fit was selected: part of its privacy statement.

    Attributes
    ----------
    run_mu : float
        Gaussian-DP parameter of one run, its score included; > 0, ``inf`` without
        privacy.
    eta, gamma : float
        Of the `RunCount`.
    scored_on : {"holdout", "public"}
        Records kept from training, with noise, or public data.

    Raises
    ------
    TypeError, ValueError
        If a field is out of its range.
    """

    run_mu: float
    eta: float
    gamma: float
    scored_on: Literal["holdout", "public"]

    def __post_init__(self) -> None:
        check_real("run_mu", self.run_mu, low=0.0, include_low=False)
        check_real("mean", self.runs.mean, low=1.0)  # less would have a cost below 0
        check_choice("scored_on", self.scored_on, SCORED_ON)

    @property
    def runs(self) -> RunCount:
        """The distribution of the number of runs."""
        return RunCount(self.eta, self.gamma)

    def event(self) -> DpEvent:
        """Return the selection as a dp-accounting event.

        Raises
        ------
        UnsupportedEventError
            If ``eta < 0``, which dp-accounting has no event for.
        """
        if self.eta < 0.0:
            raise UnsupportedEventError(
                f"eta must be >= 0 for a dp-accounting event, got {self.eta!r}."
            )
        run: DpEvent = NonPrivateDpEvent()
        if math.isfinite(self.run_mu):
            run = GaussianDpEvent(1.0 / self.run_mu)
        return RepeatAndSelectDpEvent(run, self.runs.mean, self.eta)

    def lines(self) -> list[str]:
        """Return what a printed statement says of the selection."""
        return [
            "  selection: the best of a random number of runs, of mean "
            f"{self.runs.mean:.6g}",
            f"    (truncated negative binomial, eta = {self.eta:g}, gamma = "
            f"{self.gamma:.6g}), each with mu = {rounded_up(self.run_mu)},",
            f"    scored on {SCORED_ON[self.scored_on]}. Epsilon covers all runs; the",
            "    releases below are those of the best one, the only one released.",
        ]
