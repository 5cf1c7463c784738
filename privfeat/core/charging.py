"""How a fit is charged to the ledger that its estimator was given."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from privfeat.core.ledger import PrivacyLedger
from privfeat.core.statement import PrivacyStatement
from privfeat.exceptions import LedgerError, PrivacyWarning


@contextmanager
def charged(
    ledger: PrivacyLedger | None, statement: PrivacyStatement, *, estimator: str
) -> Iterator[None]:
    """Charge the fit that the body makes, before the body starts.

    If the body fails the charge stands. Without a ledger nothing happens.
    """
    if ledger is None:
        yield
        return
    number = ledger.charge(statement, estimator=estimator)
    yield
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
