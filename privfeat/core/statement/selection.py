"""What a statement says of the selection of a fit among many."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from privfeat._checks import check_choice, check_real
from privfeat._types import Adjacency
from privfeat.core.accounting.conversions import MU_RANGE
from privfeat.core.accounting.plan import ReleasePlan
from privfeat.core.accounting.run_count import RunCount
from privfeat.core.accounting.selection import SLACK, selection_epsilon
from privfeat.core.statement.rounding import rounded_up
from privfeat.exceptions import PrivacyError, UnsupportedEventError

if TYPE_CHECKING:
    from dp_accounting import DpEvent

SCORED_ON = {
    "holdout": "records kept from training, with noise",
    "public": "public data",
}
# Covers the rounding of a plan's mu; `selection_mu` leaves room for it.
_MORE = 1.0 + SLACK / 2.0


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
    """

    run_mu: float
    eta: float
    gamma: float
    scored_on: Literal["holdout", "public"]

    def __post_init__(self) -> None:
        check_real("run_mu", self.run_mu, low=0.0, include_low=False)
        # of a mean below 1, as rounding may make it, `selection_rdp` has a negative log
        check_real("mean", self.runs.mean, low=1.0)
        check_choice("scored_on", self.scored_on, SCORED_ON)

    @property
    def runs(self) -> RunCount:
        """The distribution of the number of runs."""
        return RunCount(self.eta, self.gamma)

    def check_cost(self, epsilon: float, delta: float) -> None:
        """Raise `PrivacyError` unless runs that `check_run` accepts cost no more."""
        if epsilon == math.inf:
            return
        mu = self.run_mu * _MORE
        if not mu <= MU_RANGE[1] or selection_epsilon(mu, delta, self.runs) > epsilon:
            raise PrivacyError(
                f"epsilon must be that of the best of runs of mu = {self.run_mu!r}, or "
                f"more, got {epsilon!r}."
            )

    def check_run(self, plan: ReleasePlan, adjacency: Adjacency) -> None:
        """Raise `PrivacyError` unless a run may draw this plan."""
        noisy = plan.private or self.run_mu == math.inf
        # what a plan says of its cost, and what its noise says
        mus = math.inf if plan.mu is None else plan.mu, _mu_of_noise(plan)
        cheap = plan.mu is not None and max(mus) <= self.run_mu * _MORE
        if not (noisy and cheap and plan.adjacency == adjacency):
            raise PrivacyError(
                f"a run must draw plans of mu = {self.run_mu!r} at most, for "
                f"{adjacency!r}, with noise, got mu = {max(mus)!r}, {plan.adjacency!r}."
            )

    def event(self) -> "DpEvent":
        """Return the selection as a dp-accounting event; there is none for eta < 0."""
        from dp_accounting import GaussianDpEvent, NonPrivateDpEvent
        from dp_accounting.dp_event import RepeatAndSelectDpEvent

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


def _mu_of_noise(plan: ReleasePlan) -> float:
    """Return the mu of all releases together, by their noise; ``inf`` without."""
    if not plan.private:
        return math.inf
    squares = (
        each.query.participations / each.noise_multiplier**2 for each in plan.releases
    )
    return math.sqrt(math.fsum(squares))
