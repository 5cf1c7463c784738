"""Whether a ledger can pay for all fits of a search, asked before the first of them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid, RandomizedSearchCV

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.conversions import gaussian_epsilon, mu_from_rho
from privfeat.core.accounting.plan import Query
from privfeat.core.ledger.budget import check_covered, spent_of
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.ledger.room import left_of
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.rounding import rounded_down, rounded_up
from privfeat.exceptions import BudgetExceededError
from privfeat.selection.inputs import BUDGET


class Charge(NamedTuple):
    """What one fit would be charged, and to which ledger."""

    ledger: PrivacyLedger
    statement: PrivacyStatement


# of one fit of an estimator, a search perhaps; None if it is not known before
Charges = list[Charge] | None
# a PrivatePipeline has no noise_multiplier, a transformer no choice of accounting
_NEEDED = {*BUDGET} - {"noise_multiplier", "accounting"}


def check_affordable(
    estimator: Any,
    candidates: Iterable[Mapping[str, Any]],
    n_splits: int,
    *,
    refit: bool,
) -> None:
    """Raise BudgetExceededError if a ledger cannot pay for a search of scikit-learn.

    All fits must have a budget by ``epsilon`` or ``rho`` and sample no records: of
    others the cost is not known before they have read their data, and nothing is said.
    Nothing is reserved either: who charges the same ledger meanwhile takes from the
    search.
    """
    charges = _of_search(estimator, candidates, n_splits, refit=refit)
    for uid in {charge.ledger.budget.uid for charge in charges or ()}:
        asked = [c for c in charges or () if c.ledger.budget.uid == uid]
        _check(asked[0].ledger, [charge.statement for charge in asked])


def _check(ledger: PrivacyLedger, fits: list[PrivacyStatement]) -> None:
    """Raise BudgetExceededError unless the budget covers all fits together."""
    budget = ledger.budget
    for fit in fits:
        check_covered(budget, fit)
    before = [charge.statement for charge in ledger.history]
    total = spent_of(budget, [*before, *fits])
    if total.epsilon <= budget.epsilon:
        return
    left = left_of(budget, before)
    remedy = "Fit fewer candidates in fewer folds, or give each a smaller budget."
    if left.rho:
        rho = left.rho / len(fits)
        epsilon = gaussian_epsilon(mu_from_rho(rho), budget.delta)
        remedy = (
            f"Each may have epsilon = {rounded_down(epsilon)} at that delta, or rho = "
            f"{rounded_down(rho)}."
        )
    raise BudgetExceededError(
        f"the {len(fits)} fits of this search and those before on {budget.dataset!r} "
        f"must cost at most epsilon = {budget.epsilon!r} at delta = {budget.delta!r}, "
        f"got {rounded_up(total.epsilon)}. No fold was fitted and nothing was charged. "
        f"{remedy}"
    )


def _of_search(
    estimator: Any,
    candidates: Iterable[Mapping[str, Any]],
    n_splits: Any,
    *,
    refit: bool,
) -> Charges:
    """Return the charges of fits in folds and, of the dearest candidate, of all."""
    if not isinstance(n_splits, int):
        return None
    found: list[Charge] = []
    dearest: list[Charge] = []
    for values in candidates:
        params = {name: clone(value, safe=False) for name, value in values.items()}
        of_one = _of_fit(clone(estimator).set_params(**params))
        if of_one is None:
            return None
        found += of_one * n_splits
        dearest = max(dearest, of_one, key=_weight)
    return found + dearest * refit


def _of_fit(estimator: Any) -> Charges:
    """Return the charges of one fit."""
    if type(estimator) in (GridSearchCV, RandomizedSearchCV):
        n_splits = getattr(estimator.cv, "n_splits", None)
        refit = estimator.refit is not False
        candidates = candidates_of(estimator)
        if candidates is None:
            return None
        return _of_search(estimator.estimator, candidates, n_splits, refit=refit)
    params = estimator.get_params(deep=False)
    if "ledger" not in params:
        of_parts = [_of_fit(part) for part in _parts(estimator, params)]
        if None in of_parts:
            return None
        return [charge for of_part in of_parts for charge in of_part or ()]
    ledger = params.get("ledger")
    if not isinstance(ledger, PrivacyLedger):
        return []
    if (
        not _NEEDED <= set(params)
        or params.get("noise_multiplier") is not None
        or params.get("sampling_prob", 1.0) != 1.0
    ):
        return None
    plan = plan_releases(
        [Query("fit", 1.0)],  # what a budget costs does not depend on the queries
        **{name: params[name] for name in BUDGET if name in params},
    )
    seeded = params.get("random_state") is not None
    unit = ledger.budget.unit  # whether groups reach the fits, they see themselves
    statement = PrivacyStatement.from_plan(plan, public=(), seeded=seeded, unit=unit)
    return [Charge(ledger, statement)]


def candidates_of(search: Any) -> list[Mapping[str, Any]] | None:
    """Return the candidates of a search; of drawn ones, others that cost the same."""
    if isinstance(search, GridSearchCV):
        return [*ParameterGrid(search.param_grid)]
    drawn = search.param_distributions
    lists = [drawn] if isinstance(drawn, Mapping) else drawn
    names = {name.rpartition("__")[2] for each in lists for name in each}
    drawn_values = [value for each in lists for value in each.values()]
    listed = all(isinstance(value, list | tuple) for value in drawn_values)
    parts = listed and any(hasattr(v, "get_params") for vs in drawn_values for v in vs)
    if parts or names & {*BUDGET, "ledger"}:
        return None
    most = len(ParameterGrid(drawn)) if listed else search.n_iter
    return [{}] * min(search.n_iter, most)


def _parts(estimator: Any, params: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the estimators that one without a ledger fits, once each."""
    if type(estimator).__module__.startswith("sklearn.frozen"):
        return
    for value in params.values():
        listed = value if isinstance(value, list | tuple) else ()
        for part in (value, *(one[1] for one in listed if isinstance(one, tuple))):
            if hasattr(part, "get_params") and not isinstance(part, type):
                yield part


def _weight(charges: list[Charge]) -> float:
    return sum((charge.statement.mu or 0.0) ** 2 for charge in charges)
