"""Where a ledger is, and what it holds for those who only read."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from privfeat.core.ledger import rows
from privfeat.core.ledger.budget import Budget
from privfeat.core.ledger.store import Store, warn_of_shared_disk


@dataclass(frozen=True)
class Account:
    """A budget and every charge to it, at one moment."""

    budget: Budget
    charges: Sequence[rows.Charge]


def find_datasets(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of the data sets that have a budget in an existing ledger.

    A file of an older release is taken over first, as where a ledger is opened: only
    `read_accounts` changes nothing at all.
    """
    with open_store(path).transaction(write=False) as found:
        return rows.find_datasets(found)


def read_accounts(path: str | os.PathLike[str]) -> list[Account]:
    """Return all that an existing ledger holds, at one moment, and change nothing.

    LedgerError if there is none, if it is damaged, or if it is a file of an older
    release, which a ledger that is opened takes over.
    """
    with open_store(path, read_only=True).transaction(write=False) as found:
        accounts = [
            rows.find_account(found, name) for name in rows.find_datasets(found)
        ]
    return [Account(budget, charges) for budget, charges in accounts if budget]


def open_store(location: str | os.PathLike[str], *, read_only: bool = False) -> Store:
    """Return the store at a path, or at a ``postgresql://`` URL.

    With ``read_only`` a file is opened for reading alone, whatever is in it; a database
    is asked not to write by every transaction that does not.
    """
    if not isinstance(location, str | os.PathLike):
        raise TypeError(f"path must be a path or a URL, got {location!r}.")
    if isinstance(location, str) and location.startswith(("postgresql:", "postgres:")):
        from privfeat.core.ledger.stores.postgres_store import PostgresStore

        return PostgresStore(location)
    if isinstance(location, str) and "://" in location:  # may hold a password
        raise ValueError(
            "path must be a path or a postgresql:// URL, got a URL of another kind."
        )
    from privfeat.core.ledger.stores.file_store import FileStore

    path = os.path.abspath(os.fsdecode(location))
    warn_of_shared_disk(path)
    return FileStore(path, read_only=read_only)
