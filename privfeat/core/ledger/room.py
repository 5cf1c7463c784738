"""What is left of a budget, and the message for a fit that needs more."""

from collections.abc import Sequence

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.conversions import (
    MU_RANGE,
    bisect,
    rho_from_mu,
    zcdp_epsilon,
)
from privfeat.core.accounting.plan import Query
from privfeat.core.ledger.budget import Budget, PrivacyValue, spent_of
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.rounding import rounded_down, rounded_up
from privfeat.exceptions import BudgetExceededError


def left_of(budget: Budget, fits: Sequence[PrivacyStatement]) -> PrivacyValue:
    """Return the largest budget that one more fit may have, of all records, unsampled.

    Notes
    -----
    The fit is planned and composed as a real one would be, so the comparison that
    finds it is the one that will charge it. ``rho`` is rounded down by more than sums
    are: several fits may share it.
    """

    def fit(epsilon: float) -> PrivacyStatement:
        plan = plan_releases(
            [Query("fit", 1.0)],  # what a budget costs does not depend on the queries
            epsilon=epsilon,
            delta=budget.delta,
            adjacency=budget.adjacency,
        )
        return PrivacyStatement.from_plan(
            plan, public=(), seeded=False, unit=budget.unit
        )

    def affordable(epsilon: float) -> bool:
        return spent_of(budget, [*fits, fit(epsilon)]).epsilon <= budget.epsilon

    least = 1.01 * zcdp_epsilon(rho_from_mu(MU_RANGE[0]), budget.delta)
    if affordable(budget.epsilon):
        epsilon = budget.epsilon
    elif affordable(least):
        gaussian = all(statement.mu is not None for statement in fits)
        epsilon = bisect(
            affordable,
            good=least,
            bad=budget.epsilon,
            tol=1e-9 if gaussian else 1e-3,  # a loss distribution takes a second
        )
    else:
        return PrivacyValue(0.0, budget.delta, 0.0)
    rho = fit(epsilon).rho
    return PrivacyValue(
        epsilon, budget.delta, None if rho is None else rho * (1 - 1e-8)
    )


def exceeded(
    budget: Budget,
    spent: Sequence[PrivacyStatement],
    statement: PrivacyStatement,
    total: float,
) -> BudgetExceededError:
    """Return the error of a fit with which all would cost ``total``."""
    left = left_of(budget, spent)
    left_now = rounded_down(left.epsilon)
    remedy = f"One more fit may have epsilon = {left_now} at that delta"
    if left.rho is not None:
        remedy += f", or rho = {rounded_down(left.rho)}"
    if statement.delta > budget.delta:
        remedy += (
            f". This one has delta = {statement.delta!r} (1e-05 unless another is "
            f"given), which costs more: pass delta = {budget.delta!r}"
        )
    if not left.epsilon:
        remedy = "Its budget is spent: nothing more can be released of its records"
    return BudgetExceededError(
        f"all uses of {budget.dataset!r} must cost at most epsilon = "
        f"{budget.epsilon!r} at delta = {budget.delta!r}, got "
        f"{rounded_up(total)} with this one. {remedy}."
    )
