"""By each accounting: what releases cost, and a plan of sampled ones."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from privfeat._types import Accounting
from privfeat.core.accounting import conversions as convert
from privfeat.core.accounting import pld, rdp
from privfeat.core.accounting.plan import PlannedRelease, Query, ReleasePlan
from privfeat.exceptions import UnsupportedEventError

if TYPE_CHECKING:
    from dp_accounting import DpEvent

# Both bound sampled records, under add/remove.
SAMPLED: tuple[Accounting, ...] = ("pld", "rdp")


def epsilon_from_mu(mu: float, delta: float, accounting: Accounting) -> float:
    """Return what a Gaussian release costs."""
    if accounting == "exact":
        return convert.gaussian_epsilon(mu, delta)
    if accounting == "zcdp":
        return convert.zcdp_epsilon(convert.rho_from_mu(mu), delta)
    from dp_accounting import GaussianDpEvent

    return finite_epsilon(GaussianDpEvent(1.0 / mu), delta, accounting)


def sampled_epsilon(event: "DpEvent", delta: float, accounting: str) -> float:
    """Return `rdp_epsilon` of an event, or `pld_epsilon` for any other accounting."""
    if accounting == "rdp":
        return rdp.rdp_epsilon(event, delta)
    return pld.pld_epsilon(event, delta)


def finite_epsilon(event: "DpEvent", delta: float, accounting: str) -> float:
    """Return `sampled_epsilon`; raise UnsupportedEventError if it is not finite."""
    epsilon = sampled_epsilon(event, delta, accounting)
    if not math.isfinite(epsilon):
        raise UnsupportedEventError(
            f"accounting={accounting!r} must find a finite epsilon for the budget, "
            "found none. Pass a larger delta or noise_multiplier, or "
            "accounting='exact'."
        )
    return epsilon


def plan_sampled(
    queries: Sequence[Query],
    epsilon: float | None,
    delta: float,
    noise_multiplier: float | None,
    accounting: Accounting,
) -> ReleasePlan:
    """Plan releases of which at least one sees a Poisson sample of the records."""

    def plan(noise_multiplier: float, spent: float) -> ReleasePlan:
        planned = tuple(
            PlannedRelease(query, noise_multiplier / math.sqrt(query.weight))
            for query in queries
        )
        return ReleasePlan(planned, "add_remove", accounting, spent, delta, None, None)

    def event(noise_multiplier: float) -> "DpEvent":
        return plan(noise_multiplier, 0.0).event()  # epsilon is not known yet

    if noise_multiplier is not None:
        spent = finite_epsilon(event(noise_multiplier), delta, accounting)
        return plan(noise_multiplier, spent)
    assert epsilon is not None  # one of the two is set by the caller
    if accounting == "rdp":
        return plan(*pld.least_noise(event, epsilon, delta, rdp.rdp_epsilon))
    return plan(*pld.pld_noise_multiplier(event, epsilon, delta))
