"""What a file or a database that keeps a ledger must offer.

A store holds rows, and removes none. Every operation is one transaction that opens the
file or database anew: threads and processes share nothing else, and one that dies holds
no lock. A transaction that returns is on disk. One that raises has changed nothing, or,
if the commit itself failed, may have charged what was never released.
"""

import os
import re
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, Protocol

from privfeat._warnings import warn
from privfeat.exceptions import LedgerError

Row = dict[str, Any]
_MOUNTS = "/proc/self/mountinfo"  # of Linux; elsewhere nobody is warned
# File systems of networks, of folders shared with virtual machines, and of programs.
_SHARED = re.compile(
    r"nfs\d?|cifs|smb\w*|lustre|gpfs|beegfs|ceph|k?afs|glusterfs|pvfs2|panfs|wekafs|"
    r"9p|virtiofs|vboxsf|vmhgfs|prl_fs|drvfs|fuse|fuse\..*"
)
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

        LedgerError if there is no ledger, or it cannot be used: nothing was changed.
        """


def damaged(what: str, why: str) -> LedgerError:
    """Return the error of a ledger that does not hold what was written."""
    return LedgerError(
        f"ledger {what} is damaged: {why}. Bring back a copy that holds every fit, or "
        "treat the budget as spent."
    )


def find_fcntl() -> ModuleType:
    """Return the module that locks files; LedgerError on Windows, which has none."""
    try:
        import fcntl
    except ImportError as error:
        raise LedgerError(
            "a ledger in a file needs a system with flock, such as Linux or macOS. "
            "Give the URL of a PostgreSQL database."
        ) from error
    return fcntl


def warn_of_shared_disk(path: str) -> None:
    """Warn if another host, or another mount, may not see the locks of a file."""
    kind = _kind_of_disk(path)
    if kind is not None and _SHARED.fullmatch(kind):
        warn(
            "path should be on a disk of this machine, got a file system of type "
            f"{kind!r}: hosts that share it may not see each other's locks, and a "
            "charge could be lost. Charge from one host alone, or give the URL of a "
            "PostgreSQL database."
        )


def _kind_of_disk(path: str) -> str | None:
    """Return the type of the file system of a file, or of the folder that it is for."""
    try:
        where = path if os.path.exists(path) else os.path.dirname(path)
        device = os.stat(where).st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        with open(_MOUNTS, encoding="utf-8", errors="replace") as mounts:
            for fields in map(str.split, mounts):
                if fields[2] == wanted:
                    return fields[fields.index("-", 6) + 1]
    except (OSError, IndexError, ValueError):  # not there, or not as Linux writes it
        pass
    return None
