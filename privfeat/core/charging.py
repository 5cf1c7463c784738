"""How a fit is charged to the ledger that its estimator was given."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from privfeat.core.folds import uncovered_choice
from privfeat.core.ledger import PrivacyLedger
from privfeat.core.ledger_runs import Tokens, check_running
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
    tokens: Tokens = (None,),
) -> Iterator[int | None]:
    """Charge the fit that the body makes, before the body starts.

    The body is given the number of the charge. A fit that goes on where it was
    interrupted passes the ``number`` that it was given, with the ``tokens`` of its
    checkpoint, and is not charged again.

    If the body fails the charge stands. Without a ledger nothing is charged. In folds
    where one record can move others, so that the charge would be too small, a fit with
    a ledger is refused, and one without warns. Of several
    processes that fit together the first charges, once for all; none starts the body
    unless it could.
    """
    team, choice = current_team(), uncovered_choice(statement.adjacency)
    if len(set(team.each(ledger is not None))) > 1:
        raise PrivacyError("all processes must have a ledger, or none.")
    if ledger is None:
        if choice is not None and statement.private:
            warnings.warn(
                "a statement holds for the records that a fit was given, and does not "
                "compose where one record more can move or change others, got "
                f"{choice.what}. {choice.remedy}",
                PrivacyWarning,
                stacklevel=4,
            )
        with _interrupt_noted("The fit had begun: its budget is spent."):
            yield None
        return
    refusal: Exception | None = None
    # Others may wait here for the first one, which may have charged already.
    with _interrupt_noted("Whether it was charged, the history of its ledger says."):
        if choice is not None:
            refusal = PrivacyError(
                "a fit with a ledger must get all records, or folds of HashKFold, as "
                "they are: elsewhere one record more can move many others, which the "
                f"charge does not cover, got {choice.what}. {choice.remedy}"
            )
        elif team.index == 0:
            try:
                if number is None:
                    number = ledger.charge(statement, estimator=estimator)
                else:
                    check_running(
                        ledger, number, tokens, statement=statement, estimator=estimator
                    )
            except Exception as error:  # noqa: BLE001 - the others wait to hear of it
                refusal = error
        refused = any(team.each(refusal is not None))
    if refused:
        raise refusal or PrivacyError("another process could not charge the ledger.")
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


def check_ledger(ledger: Any) -> None:
    """Raise TypeError unless ``ledger`` is one, or None."""
    if ledger is not None and not isinstance(ledger, PrivacyLedger):
        raise TypeError(
            f"ledger must be None or a PrivacyLedger, got {type(ledger).__name__}."
        )
