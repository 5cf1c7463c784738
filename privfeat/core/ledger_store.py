"""Where a ledger is kept: a file, or what has the same interface.

A store holds rows, of which none is ever removed. Every operation is one transaction
that opens the place anew, so threads and processes share nothing but the place, and
one that dies holds no lock. A transaction that returns is on disk. One that raises has
changed nothing, or, if the failure was in the commit itself, may have charged what was
never released.
"""

import os
from contextlib import AbstractContextManager
from typing import Any, Protocol

from privfeat.exceptions import LedgerError

Row = dict[str, Any]
BUDGETS, CHARGES = "privfeat_budget", "privfeat_charge"
KEYS = {BUDGETS: ("dataset",), CHARGES: ("dataset", "number")}
TIMEOUT = 300  # seconds to wait for other processes: any of them may go first


class Transaction(Protocol):
    """What can be done to the rows of a ledger: all of it together, or nothing."""

    def select(self, table: str, dataset: str | None = None) -> list[Row]:
        """Return the rows of one data set, or of all, in any order."""

    def insert(self, table: str, row: Row) -> None:
        """Write a row that is not there yet."""

    def update(self, table: str, row: Row) -> None:
        """Change some columns of the row that has the same key."""


class Store(Protocol):
    """A place that may hold a ledger."""

    def create(self) -> None:
        """Make an empty ledger, all of it or nothing, unless there is one."""

    def transaction(self, *, write: bool) -> AbstractContextManager[Transaction]:
        """Run the body in one transaction, alone if it writes.

        Raises
        ------
        LedgerError
            If there is no ledger, or it cannot be used; nothing was changed then.
        """


def open_store(location: str | os.PathLike[str]) -> Store:
    """Return the store at a path, or at a ``postgresql://`` URL."""
    if not isinstance(location, str | os.PathLike):
        raise TypeError(f"path must be a path or a URL, got {location!r}.")
    if isinstance(location, str) and location.startswith(("postgresql:", "postgres:")):
        from privfeat.core.ledger_postgres import PostgresStore

        return PostgresStore(location)
    if isinstance(location, str) and "://" in location:  # may hold a password
        raise ValueError(
            "path must be a path or a postgresql:// URL, got a URL of another kind."
        )
    from privfeat.core.ledger_disk import warn_of_shared_disk
    from privfeat.core.ledger_file import FileStore

    path = os.path.abspath(os.fsdecode(location))
    warn_of_shared_disk(path)
    return FileStore(path)


def damaged(what: str, why: str) -> LedgerError:
    """Return the error of a ledger that does not hold what was written."""
    return LedgerError(
        f"ledger {what} is damaged: {why}. Bring back a copy that holds every fit, or "
        "treat the budget as spent."
    )
