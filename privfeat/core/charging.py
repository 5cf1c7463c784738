"""How a fit is charged to the ledger that its estimator was given."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from privfeat.core.folds import uncovered_choice
from privfeat.core.ledger import PrivacyLedger
from privfeat.core.processes import current_team
from privfeat.core.statement import PrivacyStatement
from privfeat.exceptions import LedgerError, PrivacyError, PrivacyWarning


@contextmanager
def charged(
    ledger: PrivacyLedger | None,
    statement: PrivacyStatement,
    *,
    estimator: str,
    number: int | None = None,
) -> Iterator[int | None]:
    """Charge the fit that the body makes, before the body starts.

    The body is given the number of the charge. A fit that goes on where it was
    interrupted passes the ``number`` that it was given, and is not charged again.

    If the body fails the charge stands. Without a ledger nothing is charged. In folds
    that one record can change, where a charge would say too little, the fit is refused
    with a ledger and warned of without. Of several
    processes that fit together the first charges, once for all; none starts the body
    unless it could.
    """
    team, choice = current_team(), uncovered_choice(statement.adjacency)
    if len(set(team.each(ledger is not None))) > 1:
        raise PrivacyError("all processes must have a ledger, or none.")
    if ledger is None:
        if choice is not None and statement.private:
            warnings.warn(
                f"fits inside {choice} have statements that hold for their training "
                "records alone and do not compose: one record more can move others "
                "between folds. Pass cv=privfeat.HashKFold().",
                PrivacyWarning,
                stacklevel=4,
            )
        with _interrupt_noted("The fit had begun: its budget is spent."):
            yield None
        return
    refusal = None
    if team.index == 0:
        try:
            if choice is not None:
                raise PrivacyError(
                    "a fit with a ledger must get all records, or folds of HashKFold: "
                    "in other folds one record more can move many others, which the "
                    f"charge does not cover, got records chosen by {choice}. Pass "
                    "cv=privfeat.HashKFold()."
                )
            if number is None:
                number = ledger.charge(statement, estimator=estimator)
            else:
                _check_running(ledger, number, statement, estimator)
        except Exception as error:  # noqa: BLE001 - the others wait to hear of it
            refusal = error
        except KeyboardInterrupt as error:
            error.add_note("Whether it was charged, the history of its ledger says.")
            raise
    if any(team.each(refusal is not None)):
        raise refusal or PrivacyError("the first process could not charge the ledger.")
    named = "" if number is None else f", as number {number} of its ledger"
    with _interrupt_noted(f"The fit was charged{named}: its budget is spent."):
        yield number
    if number is None:  # the first process has it
        return
    try:
        ledger.finish(number)
    except LedgerError as error:  # the fit is paid for: it must not be lost as well
        warnings.warn(
            f"the ledger keeps the charge, but not that its fit is finished: {error}",
            PrivacyWarning,
            stacklevel=4,
        )


@contextmanager
def _interrupt_noted(sentence: str) -> Iterator[None]:
    """Add a note to the error by which Ctrl-C stops the body."""
    try:
        yield
    except KeyboardInterrupt as error:
        error.add_note(sentence)
        raise


def _check_running(
    ledger: PrivacyLedger, number: int, statement: PrivacyStatement, estimator: str
) -> None:
    """Raise PrivacyError unless this fit was charged by that number, and runs."""
    charges = {charge.number: charge for charge in ledger.history}
    charge = charges.get(number)
    if charge is None or (charge.estimator, charge.statement) != (estimator, statement):
        raise PrivacyError(
            f"charge {number} of {ledger.budget.dataset!r} must be that of the "
            "interrupted fit, got another. Start the fit anew."
        )
    if charge.fitted is not None:
        raise PrivacyError(
            f"charge {number} of {ledger.budget.dataset!r} must be of a fit that was "
            "interrupted, got one that is finished: to go on would be a second fit. "
            "Start it anew."
        )


def check_ledger(ledger: Any) -> None:
    """Raise TypeError unless ``ledger`` is one, or None."""
    if ledger is not None and not isinstance(ledger, PrivacyLedger):
        raise TypeError(
            f"ledger must be None or a PrivacyLedger, got {type(ledger).__name__}."
        )
