"""What the fits of a whole project cost together, before any data is read."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from privfeat._checks import check_int, check_real
from privfeat._types import Accounting, Adjacency, Unit
from privfeat.core.accounting.calibration import DEFAULT_EPSILON, plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.accounting.run_count import RunCount
from privfeat.core.accounting.selection import selection_mu
from privfeat.core.ledger.budget import (
    Budget,
    PrivacyValue,
    check_covered,
    new_budget,
    spent_of,
)
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.ledger.room import left_of
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.rounding import rounded_down, rounded_up
from privfeat.core.statement.selection import Selection


@dataclass(frozen=True, kw_only=True)
class PlannedFit:
    """One fit of a project, or several that cost the same: fits, evaluations, searches.

    Attributes
    ----------
    name : str
        For people.
    count : int
        How often, in [1, 10000]: a search of scikit-learn of c candidates in k folds is
        c k + 1 fits.
    epsilon, delta, rho, noise_multiplier
        Its budget, as of an estimator: at most one but ``delta``; epsilon 1 by default.
    steps : int
        Of ``noise_multiplier``, and of sampled records: number of releases, >= 1.
    sampling_prob : float
        Of each step, in (0, 1]: expected batch size over the number of records.
    accounting : str, optional
        As of an estimator. Default: "exact", and "pld" for sampled records.
    mean_runs : float, optional
        The fit is a `DPRandomizedSearch` of so many runs, with ``eta``.
    """

    name: str = "fit"
    count: int = 1
    epsilon: float | None = None
    delta: float = 1e-5
    rho: float | None = None
    noise_multiplier: float | None = None
    steps: int = 1
    sampling_prob: float = 1.0
    accounting: Accounting | None = None
    mean_runs: float | None = None
    eta: float = 1.0

    def state(self, adjacency: Adjacency, unit: Unit) -> PrivacyStatement:
        """Return what one such fit will state, as it will be charged."""
        check_int("count", self.count, low=1, high=10_000)
        steps = check_int("steps", self.steps, low=1)
        sampling_prob = check_real(
            "sampling_prob", self.sampling_prob, low=0.0, high=1.0, include_low=False
        )
        usual: Accounting = "exact" if sampling_prob == 1.0 else "pld"
        plan = plan_releases(
            [Query("fit", 1.0, count=steps, sampling_prob=sampling_prob)],
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            noise_multiplier=self.noise_multiplier,
            accounting=self.accounting or usual,
            adjacency=adjacency,
        )
        stated = PrivacyStatement.from_plan(plan, public=(), seeded=False, unit=unit)
        if self.mean_runs is None:
            return stated
        if self.rho or self.noise_multiplier or sampling_prob < 1.0:
            raise ValueError("a fit with mean_runs must have its budget by epsilon.")
        runs = RunCount.from_mean(self.mean_runs, self.eta)
        epsilon = DEFAULT_EPSILON if self.epsilon is None else self.epsilon
        mu = selection_mu(epsilon, plan.delta, runs)
        return dataclasses.replace(
            stated,
            rho=None,
            mu=None,
            accounting="selection",
            releases=(),
            selection=Selection(mu, runs.eta, runs.gamma, "holdout"),
        )


@dataclass(frozen=True)
class ProjectPlan:
    """What `plan_project` found.

    Attributes
    ----------
    budget : Budget
    spent : PrivacyValue
        Before the project.
    fits : tuple of PlannedFit
    costs : tuple of PrivacyValue
        Of each of them, ``count`` included, alone.
    totals : tuple of PrivacyValue
        Of all that was spent, and of the fits up to this one.
    remaining : PrivacyValue
        The largest budget that one more fit may have at the end; epsilon 0 if none.
    """

    budget: Budget
    spent: PrivacyValue
    fits: tuple[PlannedFit, ...]
    costs: tuple[PrivacyValue, ...]
    totals: tuple[PrivacyValue, ...]
    remaining: PrivacyValue

    @property
    def total(self) -> PrivacyValue:
        """What everything costs together."""
        return self.totals[-1]

    @property
    def fits_budget(self) -> bool:
        """Whether a ledger would grant all of it."""
        return self.total.epsilon <= self.budget.epsilon

    def __str__(self) -> str:
        """Return the plan as a table, for people."""
        budget = self.budget
        lines = [
            f"budget  epsilon = {budget.epsilon:g} at delta = {budget.delta:g}, "
            f"{budget.unit}, {budget.adjacency}",
            f"spent   epsilon = {rounded_up(self.spent.epsilon)}",
            f"{'times':>7}  {'epsilon':>9}  {'together':>9}  fit",
        ]
        for fit, cost, total in zip(self.fits, self.costs, self.totals, strict=True):
            over = "" if total.epsilon <= budget.epsilon else "  (TOO MUCH)"
            lines.append(
                f"{fit.count:>7}  {rounded_up(cost.epsilon, 4):>9}  "
                f"{rounded_up(total.epsilon, 4):>9}  {fit.name}{over}"
            )
        left = self.remaining
        rho = "" if left.rho is None else f", or rho = {rounded_down(left.rho)}"
        end = f"left    epsilon = {rounded_down(left.epsilon)}{rho}, for one more fit"
        if not self.fits_budget:
            end = "left    nothing: these fits cost more than the budget"
        return "\n".join([*lines, end])


def plan_project(
    fits: Sequence[PlannedFit],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: Adjacency | None = None,
    unit: Unit | None = None,
    ledger: PrivacyLedger | None = None,
) -> ProjectPlan:
    """Return what fits will cost together, and what they leave.

    Parameters
    ----------
    fits : sequence of PlannedFit
        At least one.
    epsilon, delta, adjacency, unit : optional
        The budget, as of `PrivacyLedger`.
    ledger : PrivacyLedger, optional
        Instead: its budget, less what was spent of it. Nothing is charged.

    Raises
    ------
    TypeError, ValueError
        If a number is out of range, if there is no fit, or not one budget.
    PrivacyError
        If a fit would have no privacy.

    Notes
    -----
    Every fit is stated as it will be charged, and all are composed as a ledger does,
    by `compose`. So a plan that fits the budget is granted to its end, if nobody else
    charges the ledger. Networks: the batch size over the number of records must be the
    one of the fit.

    Examples
    --------
    >>> plan = plan_project([PlannedFit(epsilon=0.5, count=7)], epsilon=3, delta=1e-5)
    >>> print(f"{plan.total.epsilon:.3f} {plan.remaining.epsilon:.3f}")
    1.453 2.504
    """
    numbers = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency, "unit": unit}
    given = [name for name, value in numbers.items() if value is not None]
    if not fits:
        raise ValueError("fits must hold at least one PlannedFit, got none.")
    if ledger is not None:
        if given:
            raise ValueError(f"{given[0]} must be None with a ledger, which has one.")
        budget: Budget | None = ledger.budget
        before = [charge.statement for charge in ledger.history]
    else:
        budget, before = new_budget("project", **numbers), []
    if budget is None:
        raise ValueError("epsilon and delta must be given, or a ledger, got neither.")
    spent, costs, totals = spent_of(budget, before), [], []
    for fit in fits:
        statement = fit.state(budget.adjacency, budget.unit)
        check_covered(budget, statement)
        same = [statement] * fit.count
        before = [*before, *same]
        costs.append(spent_of(budget, same))
        totals.append(spent_of(budget, before))
    return ProjectPlan(
        budget=budget,
        spent=spent,
        fits=tuple(fits),
        costs=tuple(costs),
        totals=tuple(totals),
        remaining=left_of(budget, before),
    )
