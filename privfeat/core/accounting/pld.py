"""Privacy loss distributions, by dp-accounting: for records that are sampled.

And Rényi bounds of the same events, to compare with what papers state.
"""

import math
from collections.abc import Callable, Iterable

import numpy as np
from dp_accounting import ComposedDpEvent, DpEvent, SelfComposedDpEvent, pld, rdp
from dp_accounting.privacy_accountant import NeighboringRelation

from privfeat.core.accounting.conversions import bisect, check_delta
from privfeat.exceptions import UnsupportedEventError

_GRID = 1e-4
# What the Fourier transforms of dp-accounting may take from a delta, for each step: it
# takes powers of numbers of size 1, whose rounding grows with the exponent. Measured
# from 1e4 to 3e6 steps, a delta is wrong by up to 9e-17 a step, in either direction.
_LOST_PER_STEP = 2.0**-51
# Whole orders: for others dp-accounting sums a series that need not converge.
_ORDERS = (*range(2, 33), 36, 40, 48, 64, 96, 128, 256, 512, 1024)


def pld_epsilon(event: DpEvent, delta: float) -> float:
    """Return the epsilon at ``delta`` that dp-accounting's PLD accountant proves.

    What its floating point may lose of ``delta`` is taken off first.

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
    lost, epsilons = _lost(event), []
    for delta in map(check_delta, deltas):
        epsilon = (
            float(composed.get_epsilon(delta - lost)) if lost < delta else math.inf
        )
        # NaN, or a negative divergence: fail closed
        epsilons.append(epsilon if epsilon >= 0.0 else math.inf)
    return epsilons


def _lost(event: DpEvent) -> float:
    """Return by how much the accountant may take a delta of ``event`` for too small."""
    return _LOST_PER_STEP * _n_steps(event)


def _n_steps(event: DpEvent) -> int:
    if isinstance(event, ComposedDpEvent):
        return sum(map(_n_steps, event.events))
    if isinstance(event, SelfComposedDpEvent):
        return int(event.count) * _n_steps(event.event)
    return 1


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
    UnsupportedEventError
        If there are too many steps for so small a ``delta``.
    """
    if not _lost(make_event(1.0)) < check_delta(delta):
        raise UnsupportedEventError(
            "delta must be larger for so many steps of sampled records: floating point "
            f"loses up to {_lost(make_event(1.0)):.2g} of it, got {delta!r}. Pass a "
            "larger one, or fewer steps."
        )

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
