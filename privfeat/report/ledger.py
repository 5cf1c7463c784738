"""A privacy ledger as a report shows it: numbers are rounded against us."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from privfeat.core.ledger.budget import spent_of
from privfeat.core.ledger.privacy_ledger import PrivacyLedger
from privfeat.core.ledger.room import left_of
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.rounding import rounded_down, rounded_up
from privfeat.report.words import UNITS, neighbours

# What is charged under the name of a class that is no estimator.
_CHARGED = {
    "PrivateCrossValidation": "private cross-validation",
    "PrivateEvaluation": "private evaluation of a model",
}
_STATUS = {"fitted": "done", "asked": "charged; not known to be done"}


@dataclass(frozen=True)
class LedgerSummary:
    """The budget of a data set, and every fit that was charged, at one moment."""

    budget: tuple[tuple[str, Any], ...]  # names and values, also of spent and left
    charges: tuple[dict[str, Any], ...]  # in their order
    holds_fit: bool  # one of them is that of the fit that is reported on
    holds_evaluation: bool = True  # the same of its private evaluation, if there is one
    # a charge has a smaller delta than the budget, where it costs less
    smaller_deltas: bool = False

    # only the evaluation is: what was charged is the budget of its test records
    of_test_records: bool = False

    @property
    def total(self) -> str:
        """What is spent in all, and of how much."""
        found = dict(self.budget)
        told = f"{found['spent']}, of a budget of {found['budget']}"
        if not self.smaller_deltas:
            return told
        return f"{told}, at which a fit of a smaller delta costs a smaller epsilon"


def summarize(
    ledger: PrivacyLedger,
    statement: PrivacyStatement,
    evaluation: PrivacyStatement | None = None,
) -> LedgerSummary:
    """Return what a report on the fit of ``statement`` says of its ledger.

    ``evaluation`` is the statement of its private evaluation, if there is one.
    """
    budget, history = ledger.budget, ledger.history
    fits = [charge.statement for charge in history]
    spent, left = spent_of(budget, fits), left_of(budget, fits)
    whole = rounded_up(budget.epsilon)
    fitted = _is_among(statement, fits)
    measured = evaluation is not None and _is_among(evaluation, fits)
    return LedgerSummary(
        budget=(
            ("data set", budget.dataset),
            ("budget", f"epsilon = {whole}, delta = {rounded_up(budget.delta)}"),
            ("spent", f"epsilon = {rounded_up(spent.epsilon)}"),
            ("left for one more fit", f"epsilon = {rounded_down(left.epsilon)}"),
            ("protected", UNITS[budget.unit]),
            ("hidden is", neighbours(budget.unit, budget.adjacency)),
            ("since", budget.created[:10]),
        ),
        charges=tuple(
            {
                "for": _CHARGED.get(charge.estimator, charge.estimator),
                "number": charge.number,
                # the day alone: times of consecutive fits would show how long one took
                "charged": charge.asked[:10],
                "epsilon": rounded_up(fit.epsilon),
                "delta": rounded_up(fit.delta),
                "status": _STATUS[charge.status],
            }
            for charge, fit in zip(history, fits, strict=True)
        ),
        holds_fit=fitted,
        holds_evaluation=evaluation is None or measured,
        of_test_records=measured and not fitted,
        smaller_deltas=any(fit.delta < budget.delta for fit in fits),
    )


def _is_among(statement: PrivacyStatement, fits: Sequence[PrivacyStatement]) -> bool:
    """Return whether the fit with this statement was charged, by name and figures.

    Fits of privfeat 0.1 and charges that a program made have no name; figures decide.
    After the charge its statement may say more: of a table, that the declaration is
    public; of a search, what its best run released.
    """
    told = _charged_part(statement)
    return any(
        fit.charge == statement.charge and _charged_part(fit) == told for fit in fits
    )


def _charged_part(statement: PrivacyStatement) -> PrivacyStatement:
    releases = () if statement.selection is not None else statement.releases
    return replace(statement, public=(), releases=releases)
