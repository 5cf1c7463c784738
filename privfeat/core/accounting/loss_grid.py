"""How fine the grid of a privacy loss distribution is, so that it stays computable.

A loss distribution is kept on a grid of losses. dp-accounting rounds it towards more
loss ([1]_, Algorithm 1), so that epsilon is an upper bound on **every** grid: what is
found here decides time and how tight the bound is, never whether it holds.

References
----------
.. [1] Doroshenko et al. Connect the Dots: Tighter Discrete Approximations of Privacy
   Loss Distributions. PETS 2022.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dp_accounting import DpEvent

FINE = 1e-4
_COARSEST = 1.0
# Points of the fine grid, and of another: a second or two of work each.
_MOST_FINE, _MOST = 4_000_000, 1_000_000
# dp-accounting cuts off Gaussian tails of mass exp(-50), sums' tails of 1e-15.
_TAIL, _LOG_TAIL = 10.0, 36.0


def loss_grid(event: "DpEvent") -> float | None:
    """Return the spacing of the grid for the losses of ``event``, 1e-4 where it can be.

    None if a spacing of 1 would take too long: epsilon is then far above 1,000.
    """
    span = math.fsum(_span(part, count) for part, count in parts(event))
    if span <= _MOST_FINE * FINE:
        return FINE
    if not span <= _MOST * _COARSEST:
        return None
    return min(FINE * 2.0 ** math.ceil(math.log2(span / (_MOST * FINE))), _COARSEST)


def parts(event: "DpEvent", count: int = 1) -> Iterator[tuple["DpEvent", int]]:
    """Yield the events that compose ``event``, each with how often it occurs."""
    from dp_accounting import ComposedDpEvent, SelfComposedDpEvent

    if isinstance(event, ComposedDpEvent):
        for part in event.events:
            yield from parts(part, count)
    elif isinstance(event, SelfComposedDpEvent):
        yield from parts(event.event, count * int(event.count))
    else:
        yield event, count


def _span(event: "DpEvent", count: int) -> float:
    """Return about how long the interval of losses of ``count`` releases is.

    Without sampling they are one Gaussian release; its interval counts four times,
    since that of sampled ones comes out about as much too long. A loss of a sampled
    one is at most ``largest``, and its mean at most ``q / (2 sigma^2)`` (convexity) and
    ``q^2 (exp(1/sigma^2) - 1)`` (the chi-squared divergence). The interval is where
    Chernoff bounds end it, for losses of 0 and ``largest`` with that mean:
    dp-accounting tries the same exponents, ``k / largest``.
    """
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

    sampled = isinstance(event, PoissonSampledDpEvent)
    release = event.event if isinstance(event, PoissonSampledDpEvent) else event
    if not isinstance(release, GaussianDpEvent) or release.noise_multiplier == 0:
        return 0.0  # no loss is computed
    inverse = 1.0 / float(release.noise_multiplier)
    if not sampled:
        return 8.0 * _TAIL * math.sqrt(count) * inverse
    prob, square = float(event.sampling_probability), inverse * inverse
    largest = square / 2.0 + _TAIL * inverse
    mean = min(prob * square / 2.0, prob * prob * math.expm1(min(square, 700.0)))
    often = count * mean / largest
    bounds = ((often * math.expm1(k) + _LOG_TAIL) / k for k in range(1, 21))
    return largest * min(bounds)
