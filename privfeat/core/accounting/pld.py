"""Privacy loss distributions, by dp-accounting: for records that are sampled.

And Rényi bounds of the same events, to compare with what papers state.
"""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from dp_accounting import DpEvent, pld, rdp
from dp_accounting.privacy_accountant import NeighboringRelation

from privfeat.core.accounting.conversions import bisect, check_delta
from privfeat.core.accounting.plan import PlannedRelease, Query, ReleasePlan
from privfeat.exceptions import UnsupportedEventError

_GRID = 1e-4
# Whole orders: for others dp-accounting sums a series that need not converge.
_ORDERS = (*range(2, 33), 36, 40, 48, 64, 96, 128, 256, 512, 1024)


def pld_epsilon(event: DpEvent, delta: float) -> float:
    """Return the epsilon at ``delta`` that dp-accounting's PLD accountant proves.

    The neighbouring relation is add/remove; under replace-one the noise multipliers in
    ``event`` are already relative to the replace-one sensitivity, and the curve of a
    Gaussian release depends on nothing else.

    Raises
    ------
    UnsupportedEventError
        If the accountant cannot bound the event.
    """
    (epsilon,) = pld_epsilons(event, [delta])
    return epsilon


def pld_epsilons(event: DpEvent, deltas: Iterable[float]) -> list[float]:
    """Return `pld_epsilon` at several deltas, for the time of one: all hold at once."""
    relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    accountant = pld.PLDAccountant(relation, value_discretization_interval=_GRID)
    if not accountant.supports(event):
        raise UnsupportedEventError(
            f"event must be supported by the PLD accountant, got {event!r}."
        )
    composed = accountant.compose(event)
    epsilons = [float(composed.get_epsilon(check_delta(delta))) for delta in deltas]
    # NaN, or a negative divergence: fail closed
    return [epsilon if epsilon >= 0.0 else math.inf for epsilon in epsilons]


def rdp_epsilon(event: DpEvent, delta: float) -> float:
    """Return the epsilon at ``delta`` by Rényi differential privacy, as in most papers.

    A bound for comparison: fits are accounted by `pld_epsilon`, which is about 7 %
    smaller. Of whole orders, so far too large above an epsilon of about 30. The
    neighbouring relation is as there; ``event`` is that of a statement, say:
    ``rdp_epsilon(clf.privacy_.event(), 1e-5)``.
    """
    accounted = rdp.RdpAccountant(_ORDERS).compose(event)
    if not np.all(accounted.rdp > 0.0):  # rounded away: it would return 0
        return math.inf
    epsilon = float(accounted.get_epsilon(check_delta(delta)))
    return epsilon if epsilon >= 0.0 else math.inf  # NaN: fail closed


def pld_noise_multiplier(
    make_event: Callable[[float], DpEvent], epsilon: float, delta: float
) -> float:
    """Return a noise multiplier at which ``make_event`` costs at most ``epsilon``.

    Found by doubling and bisection to a relative 1e-3, rounded up.

    Raises
    ------
    ValueError
        If a noise multiplier of 1e6 is not enough.
    """

    def affordable(noise_multiplier: float) -> bool:
        return pld_epsilon(make_event(float(noise_multiplier)), delta) <= epsilon

    # Walk down from enough noise: tiny multipliers make huge loss distributions.
    high = 1.0
    while not affordable(high):
        high *= 2.0
        if high > 1e6:
            raise ValueError(
                "epsilon and delta must allow a noise multiplier of at most 1e6, got "
                f"epsilon={epsilon!r}, delta={delta!r}."
            )
    low = 0.8 * high
    while low > 1e-3 and affordable(low):
        low, high = 0.8 * low, low
    return bisect(affordable, good=high, bad=low, tol=1e-3)


def finite_epsilon(event: DpEvent, delta: float) -> float:
    """Return `pld_epsilon`; raise UnsupportedEventError if it is not finite."""
    epsilon = pld_epsilon(event, delta)
    if not math.isfinite(epsilon):
        raise UnsupportedEventError(
            "accounting='pld' must find a finite epsilon for the budget, found none. "
            "Pass a larger delta or noise_multiplier, or accounting='exact'."
        )
    return epsilon


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

    if noise_multiplier is None:
        assert epsilon is not None  # one of the two is set by the caller
        noise_multiplier = pld_noise_multiplier(event, epsilon, delta)
    return plan(noise_multiplier, finite_epsilon(event(noise_multiplier), delta))
