"""The noise that meets a checked budget, by bisection or in closed form."""

import math
from collections.abc import Mapping, Sequence

from dp_accounting import DpEvent, GaussianDpEvent

from privfeat._checks import check_real
from privfeat._types import Accounting, Adjacency
from privfeat.core.accounting import conversions as convert
from privfeat.core.accounting import pld
from privfeat.core.accounting.plan import PlannedRelease, Query, ReleasePlan
from privfeat.exceptions import UnsupportedEventError

# Covers the rounding of the square roots below; noise rounds up.
_ROUND_UP = 1.0 + 1e-12


def plan_gaussian(
    queries: Sequence[Query],
    epsilon: float | None,
    delta: float,
    rho: float | None,
    noise_multiplier: float | None,
    accounting: Accounting,
    adjacency: Adjacency,
    shares: Mapping[str, float],
) -> ReleasePlan:
    """Plan releases that all see every record: together one Gaussian release."""
    if noise_multiplier is not None:
        mu = math.sqrt(total_weight(queries)) / noise_multiplier
    elif rho is not None:
        mu = convert.mu_from_rho(rho)
    else:
        assert epsilon is not None  # one of the three is set by the caller
        mu = _mu_from_epsilon(epsilon, delta, accounting)
    low, high = convert.MU_RANGE
    if not low <= mu <= high:
        raise ValueError(
            f"the budget must give a total mu in [{low:g}, {high:g}], got {mu:.6g} "
            f"from rho={rho!r}, noise_multiplier={noise_multiplier!r}, "
            f"epsilon={epsilon!r}. Change it, or the number of releases."
        )
    planned = tuple(
        PlannedRelease(
            query, math.sqrt(query.count / shares[query.name]) / mu * _ROUND_UP
        )
        for query in queries
    )
    for release in planned:
        check_real(
            f"noise multiplier of {release.query.name}",
            release.noise_multiplier,
            low=1e-6,
            high=1e6,
            remedy="Change the budget or the number of releases.",
        )
    if epsilon is None:
        epsilon = _epsilon_from_mu(mu, delta, accounting)
    return ReleasePlan(
        planned, adjacency, accounting, epsilon, delta, convert.rho_from_mu(mu), mu
    )


def _mu_from_epsilon(epsilon: float, delta: float, accounting: Accounting) -> float:
    if accounting == "exact":
        return convert.gaussian_mu(epsilon, delta)
    if accounting == "zcdp":
        return convert.mu_from_rho(convert.zcdp_rho(epsilon, delta))
    noise_multiplier, _ = pld.pld_noise_multiplier(GaussianDpEvent, epsilon, delta)
    return 1.0 / noise_multiplier


def _epsilon_from_mu(mu: float, delta: float, accounting: Accounting) -> float:
    if accounting == "exact":
        return convert.gaussian_epsilon(mu, delta)
    if accounting == "zcdp":
        return convert.zcdp_epsilon(convert.rho_from_mu(mu), delta)
    return _finite(pld.pld_epsilon(GaussianDpEvent(1.0 / mu), delta))


def plan_sampled(
    queries: Sequence[Query],
    epsilon: float | None,
    delta: float,
    noise_multiplier: float | None,
) -> ReleasePlan:
    """Plan releases of which at least one sees a Poisson sample of the records."""

    def plan(noise_multiplier: float, spent: float) -> ReleasePlan:
        planned = tuple(
            PlannedRelease(query, noise_multiplier / math.sqrt(query.weight))
            for query in queries
        )
        return ReleasePlan(planned, "add_remove", "pld", spent, delta, None, None)

    def event(noise_multiplier: float) -> DpEvent:
        return plan(noise_multiplier, 0.0).event()  # epsilon is not known yet

    if noise_multiplier is not None:
        spent = _finite(pld.pld_epsilon(event(noise_multiplier), delta))
        return plan(noise_multiplier, spent)
    assert epsilon is not None  # one of the two is set by the caller
    return plan(*pld.pld_noise_multiplier(event, epsilon, delta))


def total_weight(queries: Sequence[Query]) -> float:
    """Return the weight of all releases of all queries."""
    return math.fsum(query.count * query.weight for query in queries)


def _finite(epsilon: float) -> float:
    """Return epsilon unless the accountant found no finite one."""
    if not math.isfinite(epsilon):
        raise UnsupportedEventError(
            "accounting='pld' must find a finite epsilon for the budget, found none. "
            "Pass a larger delta or noise_multiplier, or accounting='exact'."
        )
    return epsilon
