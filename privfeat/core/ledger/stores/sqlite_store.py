"""The SQLite files that older releases kept ledgers in, read once to be replaced.

SQLite reads the write-ahead log beside them up to the first wrong byte, and says
nothing of the rest. So the log is checked here first.
"""

import os
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

from privfeat.core.ledger.store import BUDGETS, CHARGES, damaged
from privfeat.exceptions import LedgerError

MAGIC = b"SQLite format 3\0"
# In the header of the file: a ledger, and one that older releases must leave alone.
_LEDGER, _TAKEN_OVER = 0x70664C64, 0x70664C65
_COLUMNS = {
    BUDGETS: "dataset, version, uid, epsilon, delta, adjacency, unit, created, sha256",
    CHARGES: "dataset, number, estimator, asked, statement, event, sha256, fitted",
}
_FRAME = 24  # bytes before each page in the write-ahead log


def read_sqlite(path: str) -> list[Any]:
    """Return the changes that make the rows of a SQLite ledger, and close it for good.

    Afterwards older releases refuse the file, and nothing beside it matters. It is a
    LedgerError if the file is no ledger, cannot be written, or is damaged.

    Three losses are not noticed: a write-ahead log removed or emptied together with the
    ``-shm`` file, charges that an undamaged older copy does not hold, and charges under
    a second name of a file that is mounted alone. The last are in the write-ahead log
    beside that name: close the ledger there with `sqlite3` first.
    """
    try:
        with open(path, "rb") as file:
            (marked,) = struct.unpack(">I", file.read(72)[68:].rjust(4, b"\0"))
        if marked not in (_LEDGER, _TAKEN_OVER):
            raise LedgerError(f"{path} must be a privfeat ledger, got something else.")
        if marked == _LEDGER and os.path.exists(f"{path}-journal"):
            raise damaged(path, "a journal is beside it that no ledger has")
        _check_log(path)
        uri = f"{Path(path).as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as opened:
            execute = opened.execute
            execute("PRAGMA synchronous=FULL")
            execute("PRAGMA fullfsync=ON")
            execute("BEGIN IMMEDIATE")
            if execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
                raise damaged(path, "SQLite finds a page out of order")
            changes = [
                ["insert", table, _row(path, names.split(", "), values)]
                for table, names in _COLUMNS.items()
                for values in execute(f"SELECT {names} FROM {table}")
            ]
            execute(f"PRAGMA application_id={_TAKEN_OVER}")
            execute("COMMIT")
            if execute("PRAGMA journal_mode=DELETE").fetchone() != ("delete",):
                raise LedgerError(f"ledger {path} must be free, but others use it.")
            return changes
    # Python decodes what SQLite says, which may quote from a damaged file.
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise LedgerError(
            f"ledger {path} must be readable and writable, got: {error}."
        ) from error


def _check_log(path: str) -> None:
    """Raise LedgerError unless all that the write-ahead log may hold is whole."""
    log, index = _read(f"{path}-wal"), _read(f"{path}-shm")
    n_whole, in_commit = _count_frames(log) if log else (0, False)
    # The index beside it says how many frames were committed and not yet copied.
    n_frames = n_copied = 0
    if len(index) >= 100 and index[:48] == index[48:96]:
        (n_frames,), (n_copied,) = (
            struct.unpack_from("=I", index, at) for at in (16, 96)
        )
    if in_commit or n_whole < n_frames != n_copied:
        raise damaged(path, "its -wal file is cut off, emptied or not as written")


def _count_frames(log: bytes) -> tuple[int, bool]:
    """Return the number of whole frames, and whether they end within a commit.

    Frames of an earlier use of the log may follow; they share no salt with its header.
    """
    if len(log) < 32:
        return 0, True
    magic, _, page, _, *salts = struct.unpack_from(">6I", log)
    order = ">" if magic & 1 else "<"
    sums = _checksum(log[:24], (0, 0), order)
    if sums != struct.unpack_from(">2I", log, 24):
        return 0, True
    n_whole, at, in_commit, size = 0, 32, False, _FRAME + page
    while at + size <= len(log):
        _, commit, *found = struct.unpack_from(">6I", log, at)
        sums = _checksum(log[at : at + 8], sums, order)
        sums = _checksum(log[at + _FRAME : at + size], sums, order)
        if found != [*salts, *sums]:
            break
        n_whole, at, in_commit = n_whole + 1, at + size, not commit
    for start in range(at, len(log), size):
        found = list(struct.unpack_from(">2I", log[start:].ljust(16, b"\0"), 8))
        if len(log) - start < size or found[0] == salts[0] or found[1] == salts[1]:
            return n_whole, True
    return n_whole, in_commit


def _row(path: str, names: list[str], values: tuple[Any, ...]) -> dict[str, Any]:
    if any(isinstance(value, bytes) for value in values):
        raise damaged(path, "a row holds what was never written")
    return dict(zip(names, values, strict=True))


def _checksum(content: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    """Continue the checksum of SQLite's file format, section 4.2."""
    a, b = sums
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for first, second in zip(words[::2], words[1::2], strict=True):
        a = (a + first + b) & 0xFFFFFFFF
        b = (b + second + a) & 0xFFFFFFFF
    return a, b


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        return b""
