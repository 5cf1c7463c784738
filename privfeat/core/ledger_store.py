"""Where a ledger is kept: a SQLite file, or what has the same interface.

Every operation is one transaction on a connection of its own, so threads and processes
share nothing but the database, and whoever dies holds no lock. A transaction that
returns is on disk; one that raises has changed nothing, or, if the failure was in the
commit itself, may have charged what was never released.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from privfeat.exceptions import LedgerError

# Runs one statement with named parameters and returns its rows.
Execute = Callable[..., list[tuple[Any, ...]]]

_APPLICATION_ID = 0x70664C64  # "pfLd", in the header of the file
TIMEOUT = 300  # seconds to wait for other processes: SQLite lets anyone go first


class Store(Protocol):
    """A database that may hold a ledger."""

    def create(self, schema: Sequence[str]) -> None:
        """Make the tables of a ledger, all or none, unless there is a ledger."""

    def transaction(self, *, write: bool) -> AbstractContextManager[Execute]:
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
    return SQLiteStore(os.path.abspath(os.fsdecode(location)))


class SQLiteStore:
    """A file on a file system of this machine, with a write-ahead log beside it.

    Notes
    -----
    The log is shared memory: processes on several hosts must not share the file over a
    network. With ``synchronous=FULL`` a commit is on disk when it returns.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def __str__(self) -> str:
        return self.path

    def create(self, schema: Sequence[str]) -> None:
        """Make the file in another folder first: it is never seen half made."""
        if os.path.exists(self.path):
            return
        folder = os.path.dirname(self.path)
        try:
            with TemporaryDirectory(dir=folder, prefix=".ledger-") as made_in:
                made = os.path.join(made_in, "ledger")
                with closing(_connect(made, "rwc")) as connection:
                    (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
                    if mode != "wal":
                        raise LedgerError(
                            f"ledger {self} must be on a file system that can have a "
                            f"write-ahead log, got journal mode {mode!r}."
                        )
                    connection.execute("BEGIN")
                    connection.execute(f"PRAGMA application_id={_APPLICATION_ID}")
                    for statement in schema:
                        connection.execute(statement)
                    connection.execute("COMMIT")
                os.link(made, self.path)  # fails if another process was first
            _sync(folder)
        except FileExistsError:
            pass
        except (OSError, sqlite3.Error) as error:
            raise LedgerError(f"ledger {self} cannot be created: {error}.") from error

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Execute]:
        """Run the body in one transaction; see `Store`."""
        if not os.path.exists(self.path):
            raise LedgerError(
                f"ledger {self} must exist, found no such file. Create it with "
                "`privfeat budget create`, or pass epsilon and delta to PrivacyLedger."
            )
        try:
            with closing(_connect(self.path, "rw")) as connection:

                def execute(sql: str, **values: Any) -> list[tuple[Any, ...]]:
                    return connection.execute(sql, values).fetchall()

                execute("BEGIN IMMEDIATE" if write else "BEGIN")
                self._check(execute)
                yield execute
                execute("COMMIT")
        # Python decodes what SQLite says, which may quote from a damaged file.
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise LedgerError(
                f"ledger {self} must be readable and writable, got: {error}."
            ) from error

    def _check(self, execute: Execute) -> None:
        """Fail unless this is a ledger, of which every page is in order."""
        if execute("PRAGMA application_id") != [(_APPLICATION_ID,)]:
            raise LedgerError(f"{self} must be a privfeat ledger, got something else.")
        if execute("PRAGMA integrity_check(1)") != [("ok",)]:
            raise LedgerError(
                f"ledger {self} is damaged. Bring back a copy that holds every fit, or "
                "treat the budget as spent."
            )


def _connect(path: str, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{Path(path).as_uri()}?mode={mode}",
        uri=True,
        timeout=TIMEOUT,
        isolation_level=None,  # transactions begin and end where we say
    )
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA fullfsync=ON")  # macOS keeps writes in the drive else
    return connection


def _sync(folder: str) -> None:
    """Put the names of the files in a folder on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
