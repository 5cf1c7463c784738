"""The budget of a data set, and what fits spend of it."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from privfeat._checks import check_choice, check_positive
from privfeat._types import ADJACENCIES, UNITS, Adjacency, Unit
from privfeat.core.accounting.calibration import MIN_DELTA
from privfeat.core.accounting.conversions import (
    check_delta,
    gaussian_mu,
    rho_from_mu,
)
from privfeat.core.statement.composition import TotalCost, compose
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.exceptions import PrivacyError


@dataclass(frozen=True)
class Budget:
    """The budget of one data set. Never changed once written."""

    dataset: str
    uid: str  # random: a budget made anew in the place of this one has another
    epsilon: float
    delta: float
    adjacency: Adjacency
    unit: Unit
    created: str  # in UTC, ISO 8601


@dataclass(frozen=True)
class PrivacyValue:
    """An amount of privacy; ``rho`` is None if some fit was sampled or selected."""

    epsilon: float
    delta: float
    rho: float | None


def now() -> str:
    """Return the time in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def new_budget(
    dataset: Any, *, epsilon: Any, delta: Any, adjacency: Any, unit: Any
) -> Budget | None:
    """Return a budget for the given numbers, or None if they are None.

    It is a TypeError or a ValueError if one is out of range, if one alone is None, or
    if no noise in the range of `plan_releases` meets the budget.
    """
    if not isinstance(dataset, str) or not 0 < len(dataset) <= 200:
        raise ValueError(
            f"dataset must be a name of 1 to 200 characters, got {dataset!r}."
        )
    if adjacency is not None:
        check_choice("adjacency", adjacency, ADJACENCIES)
    if unit is not None:
        check_choice("unit", unit, UNITS)
    if epsilon is None and delta is None:
        return None
    epsilon = check_positive("epsilon", epsilon)
    delta = check_delta(delta, low=MIN_DELTA)
    gaussian_mu(epsilon, delta)
    return Budget(
        dataset=dataset,
        uid=uuid.uuid4().hex,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency or "add_remove",
        unit=unit or "record",
        created=now(),
    )


def check_covered(budget: Budget, statement: PrivacyStatement) -> None:
    """Raise unless a fit protects what the budget is for.

    PrivacyError without a finite epsilon, or with a seed; ValueError if the adjacency
    or unit is another.
    """
    if not statement.private:
        raise PrivacyError(
            "a fit with a ledger must have a finite epsilon and no random_state, "
            f"got epsilon={statement.epsilon!r}, seeded={statement.seeded!r}. Pass "
            "ledger=None for data that needs no privacy."
        )
    for name in ("adjacency", "unit"):
        wanted, got = getattr(budget, name), getattr(statement, name)
        if got != wanted:
            remedy = ""
            if got == "record":
                remedy = (
                    " Say whose each record is: groups and max_group_size (--users "
                    "COLUMN of a table, --groups of features, --max-group-size). "
                    "A DPRandomizedSearch cannot: it protects single records."
                )
            if got == "user":
                remedy = (
                    " A budget of users is made with unit='user' (budget create --unit "
                    "user), before anything is spent on their records."
                )
            raise ValueError(
                f"{name} must be {wanted!r}, as in the budget of "
                f"{budget.dataset!r}, which cannot be changed, got {got!r}.{remedy}"
            )


def check_charged_once(
    fits: Sequence[PrivacyStatement], statement: PrivacyStatement
) -> None:
    """Raise PrivacyError if the charge of a statement is that of one of the fits."""
    charges = [fit.charge for fit in fits]
    if statement.charge is not None and statement.charge in charges:
        raise PrivacyError(
            "a fit must be charged once, got the statement of charge "
            f"{charges.index(statement.charge) + 1} of {len(charges)}. Leave it out."
        )


def spent_of(budget: Budget, fits: Sequence[PrivacyStatement]) -> PrivacyValue:
    """Return what fits cost together at the delta of the budget: `compose`."""
    if not fits:
        return PrivacyValue(0.0, budget.delta, 0.0)
    total = _composed(tuple(fits), budget.delta)
    rho = None if total.mu is None else rho_from_mu(total.mu)
    return PrivacyValue(total.epsilon, budget.delta, rho)


@lru_cache(maxsize=2)  # a fit asks before its body, and again as it is charged
def _composed(fits: tuple[PrivacyStatement, ...], delta: float) -> TotalCost:
    return compose(fits, delta=delta)
