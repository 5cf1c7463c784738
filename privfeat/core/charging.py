"""How a fit is charged to the ledger that its estimator was given."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from privfeat.core.ledger import PrivacyLedger
from privfeat.core.processes import current_team
from privfeat.core.statement import PrivacyStatement
from privfeat.exceptions import LedgerError, PrivacyError, PrivacyWarning


@contextmanager
def charged(
    ledger: PrivacyLedger | None, statement: PrivacyStatement, *, estimator: str
) -> Iterator[None]:
    """Charge the fit that the body makes, before the body starts.

    If the body fails the charge stands. Without a ledger nothing happens. Of several
    processes that fit together the first charges, once for all; none starts the body
    unless it could.
    """
    team = current_team()
    if len(set(team.each(ledger is not None))) > 1:
        raise PrivacyError("all processes must have a ledger, or none.")
    if ledger is None:
        yield
        return
    number, refusal = 0, None
    if team.index == 0:
        try:
            number = ledger.charge(statement, estimator=estimator)
        except Exception as error:  # noqa: BLE001 - the others wait to hear of it
            refusal = error
    if any(team.each(refusal is not None)):
        raise refusal or PrivacyError("the first process could not charge the ledger.")
    yield
    if team.index > 0:
        return
    try:
        ledger.finish(number)
    except LedgerError as error:  # the fit is paid for: it must not be lost as well
        warnings.warn(
            f"the ledger keeps the charge, but not that its fit is finished: {error}",
            PrivacyWarning,
            stacklevel=4,
        )


def check_ledger(ledger: Any) -> None:
    """Raise TypeError unless ``ledger`` is one, or None."""
    if ledger is not None and not isinstance(ledger, PrivacyLedger):
        raise TypeError(
            f"ledger must be None or a PrivacyLedger, got {type(ledger).__name__}."
        )
