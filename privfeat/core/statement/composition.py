"""The cost of several fits on the same records together."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from privfeat._types import Adjacency
from privfeat.core.accounting.calibration import MIN_DELTA, MIN_SAMPLED_DELTA
from privfeat.core.accounting.conversions import check_delta, gaussian_epsilon
from privfeat.core.accounting.pld import pld_epsilon
from privfeat.core.accounting.rdp import (
    divergences_of,
    epsilon_of_divergences,
    rdp_epsilon,
)
from privfeat.core.accounting.selection import (
    check_run_delta,
    or_infinite,
    selection_rdp,
)
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.rounding import rounded_up

_ROUND_UP = 1.0 + 1e-12
_ORDERS = np.array([1.0 + x / 10.0 for x in range(1, 100)] + [*range(11, 257), 512])


@dataclass(frozen=True)
class TotalCost:
    """What several fits on the same records cost together.

    Attributes
    ----------
    epsilon, delta : float
        ``epsilon`` is ``inf`` if some fit has no privacy, or no bound is known.
    mu : float or None
        Gaussian-DP parameter, if every fit has one.
    adjacency : {"add_remove", "replace_one"}
    method : str
        How the costs were composed.
    n_fits : int
    seeded : bool
        Whether the noise of some fit can be reproduced from a seed.
    not_covered : tuple of str
        What else came out of the records, with **no** guarantee.
    """

    epsilon: float
    delta: float
    mu: float | None
    adjacency: Adjacency
    method: str
    n_fits: int
    seeded: bool = False
    not_covered: tuple[str, ...] = ()

    @property
    def private(self) -> bool:
        """Whether epsilon is finite, no fit is seeded, and all outputs are covered."""
        return math.isfinite(self.epsilon) and not self.seeded and not self.not_covered

    def __str__(self) -> str:
        """Return the cost in words and numbers, for people."""
        lines = [
            f"{self.n_fits} fits together: epsilon = {rounded_up(self.epsilon)}, "
            f"delta = {rounded_up(self.delta, 3)}, {self.adjacency}",
            f"  composed by: {self.method}",
        ]
        if self.mu is not None and math.isfinite(self.mu):
            lines.append(f"  also: mu = {rounded_up(self.mu)} (GDP)")
        if self.seeded:
            lines.append("  SEEDED: not private against who knows or guesses a seed.")
        if self.not_covered:
            lines.append("  NOT COVERED, with no privacy guarantee at all:")
            lines += [f"    - {item}" for item in self.not_covered]
        return "\n".join(lines)


def compose(
    statements: Iterable[PrivacyStatement], *, delta: float | None = None
) -> TotalCost:
    """Return what several fits on the same records cost together.

    Parameters
    ----------
    statements : iterable of PrivacyStatement
        The ``privacy_`` of every fit, a statement once for each fit that it holds for.
        Later fits may depend on what earlier ones released.
    delta : float, optional
        Where the total epsilon is evaluated; in [1e-10, 1), or [1e-9, 1) with sampled
        records. Default: the delta of the statements, if they share one.

    Raises
    ------
    TypeError, ValueError
        If there is no statement, or something else; if the adjacencies or units differ;
        or if ``delta`` is out of range.

    Notes
    -----
    **Guarantee.** Gaussian fits compose to ``mu = sqrt(sum mu_i**2)`` without loss,
    [1]_. With sampled records the loss distributions compose (dp-accounting's PLD), and
    with selections, or if all sampled fits have ``accounting="rdp"``, the Rényi
    divergences (its RDP, and ``selection_rdp``). Where
    ``delta`` is at least the sum of the deltas, the sum of the epsilons is a bound as
    well, [2]_. The smallest bound is returned. The caller must pass all statements.

    References
    ----------
    .. [1] Dong, Roth & Su. Gaussian Differential Privacy. JRSS-B 2022. Corollary 2.
    .. [2] Dwork & Roth. The Algorithmic Foundations of Differential Privacy. 2014.
       Theorem 3.16; adaptively, Appendix B.

    Examples
    --------
    >>> from privfeat.core.accounting.calibration import plan_releases
    >>> from privfeat.core.accounting.plan import Query
    >>> plan = plan_releases([Query("gram", 1.0)], epsilon=1.0)
    >>> fit = PrivacyStatement.from_plan(plan, public=(), seeded=False)
    >>> print(f"{compose([fit] * 4).epsilon:.3f}")
    2.155
    """
    fits = list(statements) if isinstance(statements, Iterable) else []
    if not fits or not all(isinstance(fit, PrivacyStatement) for fit in fits):
        raise TypeError(
            "statements must be one or more PrivacyStatement objects. Pass a list of "
            "the privacy_ of each fit."
        )
    delta = _check_delta(fits, delta)
    if len({fit.adjacency for fit in fits}) > 1:
        raise ValueError("statements must share one adjacency, got both.")
    if len({fit.unit for fit in fits}) > 1:
        raise ValueError(
            "statements must share one unit, got record and user. A ledger of users is "
            "made with unit='user' (--unit user), and fits say whose each record is."
        )
    epsilon, mu, method = _compose(fits, delta)
    if math.fsum(fit.delta for fit in fits) <= delta:
        added = math.fsum(fit.epsilon for fit in fits)
        if added < epsilon:
            epsilon, method = added, "sum of the epsilons and deltas"
    return TotalCost(
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        adjacency=fits[0].adjacency,
        method=method,
        n_fits=len(fits),
        seeded=any(fit.seeded for fit in fits),
    )


def _compose(
    fits: Sequence[PrivacyStatement], delta: float
) -> tuple[float, float | None, str]:
    """Return epsilon, mu and the name of the method."""
    selected = [fit.selection for fit in fits if fit.selection is not None]
    mus = [fit.mu for fit in fits if fit.mu is not None and fit.selection is None]
    if any(not fit.epsilon < math.inf for fit in fits):
        return math.inf, math.inf, "a fit without privacy"
    if len(mus) == len(fits):
        mu = math.hypot(*mus) * _ROUND_UP
        return gaussian_epsilon(mu, delta), mu, "exact curve of the composed Gaussians"
    from dp_accounting import ComposedDpEvent

    rest = ComposedDpEvent([fit.event() for fit in fits if fit.selection is None])
    if not selected:
        if all(fit.accounting == "rdp" for fit in fits if fit.mu is None):
            return rdp_epsilon(rest, delta), None, "Rényi divergences"
        return pld_epsilon(rest, delta), None, "privacy loss distributions"
    # for others dp-accounting sums a series that need not converge, where it samples
    sampled = len(mus) + len(selected) < len(fits)
    orders = _ORDERS[_ORDERS % 1.0 == 0.0] if sampled else _ORDERS
    divergences = divergences_of(rest, orders)
    for selection in selected:
        check_run_delta(delta, selection.runs)
        divergences += selection_rdp(orders, selection.run_mu, selection.runs)
    drawn = delta * (1.0 - 2e-9)  # less what the drawing of numbers of runs takes
    epsilon = epsilon_of_divergences(orders, divergences, drawn)
    return or_infinite(epsilon, delta, len(selected)), None, "Rényi divergences"


def _check_delta(fits: Sequence[PrivacyStatement], delta: float | None) -> float:
    """Return the delta of the total: the given one, or that of all statements."""
    deltas = {fit.delta for fit in fits}
    if delta is None and len(deltas) > 1:
        raise ValueError(
            f"delta must be given when those of the statements differ, got {deltas}."
        )
    sampled = any(fit.mu is None and fit.selection is None for fit in fits)
    return check_delta(
        deltas.pop() if delta is None else delta,
        low=MIN_SAMPLED_DELTA if sampled else MIN_DELTA,
    )
