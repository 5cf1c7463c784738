"""A ledger in one file, with nothing beside it."""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from privfeat.core.ledger import store
from privfeat.core.ledger.store import Transaction
from privfeat.core.ledger.stores.chained_log import (
    MARK_BYTES,
    Log,
    LoggedRows,
    add_line,
    first_mark,
    read_log,
    read_marks,
)
from privfeat.core.ledger.stores.sqlite_store import MAGIC, read_sqlite
from privfeat.exceptions import LedgerError


class FileStore:
    """A file on a file system of this machine; `chained_log` says what is in it.

    The lock is on the file itself, and nothing stands beside it: hard links, symbolic
    links and bind mounts are names of one ledger. A copy is another ledger. On a
    network, file systems may hide what one host locks and writes from another. With
    ``read_only`` a transaction that would write is refused.
    """

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        self.path, self._read_only = path, read_only

    def __str__(self) -> str:
        return self.path

    def create(self) -> None:
        """Make the file in another folder first: nobody sees it half made."""
        if os.path.exists(self.path):
            return
        folder = os.path.dirname(self.path)
        try:
            with TemporaryDirectory(dir=folder, prefix=".ledger-") as made_in:
                made = os.path.join(made_in, "ledger")
                with open(made, "xb", buffering=0) as file:
                    mark = first_mark(2 * MARK_BYTES).render()
                    _write(file.fileno(), mark + mark, 0)
                os.link(made, self.path)  # fails if another process was first
        except FileExistsError:
            pass
        except OSError as error:
            raise LedgerError(f"ledger {self} cannot be created: {error}.") from error

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Run the body in one transaction; see `Store`."""
        try:
            with self._locked(write) as file:
                if not _is_old(file):
                    yield from self._run(file)
                    return
            with self._locked(write=True) as file:
                if _is_old(file):
                    _take_over(file, self.path)
                yield from self._run(file)
        except OSError as error:
            raise LedgerError(  # or a checkpoint, which the body writes
                f"ledger {self} must be readable and writable, got: {error}."
            ) from error

    def _run(self, file: int) -> Iterator[Transaction]:
        """Yield what the file holds, and write down what was changed."""
        log = read_log(os.pread(file, os.fstat(file).st_size, 0), self.path)
        yield (rows := LoggedRows(self.path, log.changes))
        if rows.changes:
            if log.mark.n_lines == 0:  # its maker may have been killed
                _sync_folder(os.path.dirname(os.path.realpath(self.path)))
            _append(file, log, rows.changes)

    @contextmanager
    def _locked(self, write: bool) -> Iterator[int]:
        """Open the file and wait until it is ours: alone to write, or with readers."""
        fcntl = store.find_fcntl()
        # While we wait, another file may come in its place: then wait for that one.
        found = False
        while not found:
            with open(self._open(write), "rb", buffering=0) as opened:
                file = opened.fileno()
                try:
                    _lock(file, fcntl.LOCK_EX if write else fcntl.LOCK_SH, self.path)
                    found = _is_at(file, self.path)
                    if found:
                        yield file
                finally:
                    # Closing is not enough: a fork may hold the file open as well.
                    fcntl.flock(file, fcntl.LOCK_UN)

    def _open(self, write: bool) -> int:
        if write and self._read_only:
            raise LedgerError(
                f"ledger {self} must be of this release to be read without a change, "
                "got one of an older release. `privfeat budget show` takes it over."
            )
        try:
            kind = os.O_RDWR if write else os.O_RDONLY  # a pipe would wait for a writer
            file = os.open(self.path, kind | os.O_NONBLOCK)
        except FileNotFoundError as error:
            raise LedgerError(
                f"ledger {self} must exist, found no such file. Create it: `privfeat "
                "budget create`, or epsilon and delta for PrivacyLedger."
            ) from error
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise LedgerError(f"ledger {self} must be a file, got something else.")
        return file


def _lock(file: int, kind: int, path: str) -> None:
    """Wait for a lock on an open file, but not for good."""
    fcntl = store.find_fcntl()
    deadline = time.monotonic() + store.TIMEOUT
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise LedgerError(
                    f"ledger {path} must be free within {store.TIMEOUT} seconds,"
                    " but another process keeps it locked."
                ) from error
            time.sleep(0.002)


def _is_at(file: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def _append(file: int, log: Log, changes: list[Any]) -> None:
    """Add a line, and count it when it is on disk."""
    (line, mark), place = add_line(log.mark, changes), log.place
    if log.is_torn:  # then the next is written over the older one
        _write(file, log.mark.render(), place)
        place = MARK_BYTES - place
    os.ftruncate(file, log.mark.end)  # what a killed process left belongs to no fit
    _write(file, line, log.mark.end)
    _write(file, mark.render(), place)


def _is_old(file: int) -> bool:
    header = os.pread(file, 2 * MARK_BYTES, 0)
    return header.startswith(MAGIC) and not any(read_marks(header))


def _take_over(file: int, path: str) -> None:
    """Turn a SQLite ledger of an older release into ours, within the same file.

    The rows are written behind the database. The file is ours as soon as it has a mark:
    first one where no database of ours has anything, then one over its first bytes.
    """
    if os.fstat(file).st_nlink != 1:
        raise LedgerError(
            f"ledger {path} is of an older release, which kept charges beside each "
            "name of a file, so it must have one name, got several. Remove the hard "
            "links that no fit was charged to."
        )
    changes = read_sqlite(os.path.realpath(path))
    start = max(os.fstat(file).st_size, 2 * MARK_BYTES)
    line, mark = add_line(first_mark(start), changes)
    _write(file, line, start)
    _write(file, mark.render(), MARK_BYTES)
    _write(file, mark.render(), 0)


def _write(file: int, content: bytes, offset: int) -> None:
    """Write to disk: it is there when this returns."""
    fcntl = store.find_fcntl()
    while content:
        n_written = os.pwrite(file, content, offset)
        content, offset = content[n_written:], offset + n_written
    os.fsync(file)
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS keeps writes in the drive else
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)


def _sync_folder(path: str) -> None:
    """Put the names of the files in a folder on disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
