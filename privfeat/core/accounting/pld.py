"""Privacy loss distributions (PLD) of sampled records, by dp-accounting."""

import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from privfeat._checks import check_real
from privfeat.core.accounting.conversions import check_delta
from privfeat.core.accounting.loss_grid import loss_grid, parts
from privfeat.exceptions import UnsupportedEventError

if TYPE_CHECKING:
    from dp_accounting import DpEvent

# Above it, epsilon is no protection, and its loss distributions are huge.
MAX_EPSILON = 1e4
# What the Fourier transforms of dp-accounting may take from a delta, for each step: it
# takes powers of numbers of size 1, whose rounding grows as the exponent, however large
# it is. Measured from 1e4 to 3e6 steps, a delta is wrong by up to 9e-17 a step, in
# either direction. Neither fewer nor more were measured; for more, 1e-9 is taken off.
_LOST_PER_STEP = 2.0**-51
# For losses from here on exp(-loss) nears the least numbers of float64, and may be
# rounded up to twice its size. So may its product with a mass. Epsilon is the logarithm
# of a quotient by the sum of these products: it is too small by log(4) at most.
_UNDERFLOW, _UNDERFLOWN = 690.0, 2.0


def pld_epsilon(event: "DpEvent", delta: float) -> float:
    """Return the epsilon at ``delta`` that dp-accounting's PLD accountant proves.

    What its floating point may lose of ``delta`` is taken off first.

    The neighbouring relation is add/remove. Without sampling, the curve depends on
    sensitivity over noise alone: so it serves replace-one if noise multipliers are
    relative to the replace-one bound. An event that the accountant cannot bound is an
    UnsupportedEventError. An epsilon so large that its loss distribution cannot be
    computed (`loss_grid`) is ``inf``.
    """
    (epsilon,) = pld_epsilons(event, [delta])
    return epsilon


def pld_epsilons(event: "DpEvent", deltas: Iterable[float]) -> list[float]:
    """Return `pld_epsilon` at several deltas, in the time that one takes."""
    from dp_accounting import pld
    from dp_accounting.privacy_accountant import NeighboringRelation

    relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    deltas, grid = [check_delta(delta) for delta in deltas], loss_grid(event)
    accountant = pld.PLDAccountant(relation, value_discretization_interval=grid or 1.0)
    if not accountant.supports(event):
        raise UnsupportedEventError(
            f"event must be supported by the PLD accountant, got {event!r}."
        )
    if grid is None:
        return [math.inf] * len(deltas)
    composed = accountant.compose(event)
    lost, epsilons = _lost(event), []
    for delta in deltas:
        with np.errstate(over="ignore"):  # an epsilon of inf says it
            epsilon = (
                float(composed.get_epsilon(delta - lost)) if lost < delta else math.inf
            )
        epsilon += _UNDERFLOWN if epsilon > _UNDERFLOW else 0.0
        # NaN, or a negative divergence: fail closed
        epsilons.append(epsilon if epsilon >= 0.0 else math.inf)
    return epsilons


def _lost(event: "DpEvent") -> float:
    """Return by how much the accountant may take a delta of ``event`` for too small."""
    return _LOST_PER_STEP * sum(count for _, count in parts(event))


def pld_noise_multiplier(
    make_event: "Callable[[float], DpEvent]", epsilon: float, delta: float
) -> tuple[float, float]:
    """Return `least_noise` by `pld_epsilon`.

    Too many steps for so small a ``delta`` are an UnsupportedEventError.
    """
    if not _lost(make_event(1.0)) < check_delta(delta):
        raise UnsupportedEventError(
            "delta must be larger for so many steps of sampled records: floating point "
            f"loses up to {_lost(make_event(1.0)):.2g} of it, got {delta!r}. Pass a "
            "larger one, or fewer steps."
        )
    return least_noise(make_event, epsilon, delta, pld_epsilon)


def pld_mu(epsilon: float, delta: float) -> float:
    """Return the mu of the Gaussian release that `pld_noise_multiplier` finds."""
    from dp_accounting import GaussianDpEvent

    noise_multiplier, _ = pld_noise_multiplier(GaussianDpEvent, epsilon, delta)
    return 1.0 / noise_multiplier


def least_noise(
    make_event: "Callable[[float], DpEvent]",
    epsilon: float,
    delta: float,
    cost: "Callable[[DpEvent, float], float]",
) -> tuple[float, float]:
    """Return the least noise at which ``make_event`` costs at most ``epsilon``.

    And its cost: the noise multiplier that is returned was tried. One that is a
    relative 1e-3 smaller costs more, unless it is below 1e-3. If 1e6 is not enough, or
    ``epsilon`` is above 1e4, it is a ValueError.
    """
    from scipy.optimize import brentq

    check_real(
        *("epsilon", epsilon),
        low=0.0,
        high=MAX_EPSILON,
        include_low=False,
        remedy="Pass a smaller one, or epsilon=inf for no privacy.",
    )
    costs: dict[float, float] = {}

    @cache
    def excess(log_noise: float) -> float:
        """Return the logarithm of cost over budget: almost a straight line."""
        noise = math.exp(log_noise)
        costs[noise] = cost(make_event(noise), delta)
        return math.log(min(max(costs[noise] / epsilon, 1e-3), 1e3))

    # The cost falls at least as fast as the noise grows: a step by the excess is long
    # enough. Steps to less noise are short: the loss distribution of next to none is
    # huge.
    low, high, most = 0.0, 0.0, math.log(1e6)
    while excess(high) > 0.0:
        if high == most:
            raise ValueError(
                "epsilon and delta must allow a noise multiplier of at most 1e6, got "
                f"epsilon={epsilon!r}, delta={delta!r}."
            )
        low, high = high, min(high + excess(high) + 1e-3, most)
    while excess(low) <= 0.0 and low > math.log(1e-3):
        low, high = low + max(excess(low), -0.3) - 1e-3, low
    if excess(low) > 0.0:
        brentq(excess, low, high, xtol=4e-4, rtol=1e-9)
    return min(pair for pair in costs.items() if pair[1] <= epsilon)
