"""The bytes of a ledger file: two marks, then one line for each transaction.

A **line** is a digest, a space, and the changes of one transaction in JSON. The digest
is SHA-256 of the digest before it and the JSON, so a line fixes all lines before it. A
**mark**, of 512 bytes, holds the number of lines, where they end, the digest of the
last, and a checksum. It is written after its line is on disk, over the older of the two
marks.

**Why no charge can vanish.** Lines are only ever added. A transaction has succeeded
when its mark is on disk, and then so are its line and all lines before it. A reader
takes every line that continues the chain. It accepts the file only if every readable
mark is that of a line it took, and both are readable, or the file is as a process
leaves it that is killed while it writes a mark.

- Killed while the line is written: no mark counts it, and no fit began. The part that
  is there does not continue the chain and will be overwritten.
- Killed while the mark is written: the other mark and the whole line are there, and
  nothing behind it. The line counts, although its fit did not begin. The next
  transaction writes the mark again before anything else.
- A line that a mark counts is damaged, cut off or gone: the mark fits no line, which is
  an error.
- A mark is damaged: an error, unless the line of the newest one is whole and the last.
  Then it counts, as above.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privfeat.core.ledger.store import KEYS, Row, damaged
from privfeat.core.ledger.stores.sqlite_store import MAGIC
from privfeat.exceptions import LedgerError

MARK_BYTES = 512  # a sector, which disks write whole
_MAGIC = b"privfeat ledger "
_FORMAT = b"2 "  # the first was SQLite
_MARK = re.compile(
    _MAGIC + _FORMAT + rb"(\d{1,15}) (\d{1,15}) (\d{1,15}) ([0-9a-f]{64}) .*\n",
    re.DOTALL,
)


@dataclass(frozen=True)
class Mark:
    """Where the lines start and end, their number, and the digest of the last."""

    start: int
    end: int
    n_lines: int
    digest: str

    def render(self) -> bytes:
        """Return the bytes of the mark."""
        fields = f"{self.start} {self.end} {self.n_lines} {self.digest} "
        text = _MAGIC + _FORMAT + fields.encode()
        return (text + _sha256(text).encode()).ljust(MARK_BYTES - 1) + b"\n"


@dataclass(frozen=True)
class Log:
    """What a file holds."""

    mark: Mark  # of the last line, whether or not the file has it
    place: int  # of the next mark: over the older or the unreadable of the two
    is_torn: bool  # one of the two is unreadable
    changes: list[Any]  # of each transaction


def first_mark(start: int) -> Mark:
    """Return the mark of a ledger without lines."""
    return Mark(start, start, 0, _sha256(b""))


def add_line(mark: Mark, changes: Sequence[Any]) -> tuple[bytes, Mark]:
    """Return the line after a mark, and the mark that counts it."""
    body = json.dumps(changes).encode()
    digest = _sha256(mark.digest.encode() + body)
    line = f"{digest} ".encode() + body + b"\n"
    return line, Mark(mark.start, mark.end + len(line), mark.n_lines + 1, digest)


def read_marks(content: bytes) -> list[Mark | None]:
    """Return the two marks at the start of a file; None for one that is damaged."""
    return [_read_mark(content[i : i + MARK_BYTES]) for i in (0, MARK_BYTES)]


def read_log(content: bytes, name: str) -> Log:
    """Return what the bytes of the file ``name`` say; LedgerError if damaged."""
    slots = read_marks(content)
    marks = {mark for mark in slots if mark is not None}
    if not marks:
        if _MAGIC not in content[: 2 * MARK_BYTES]:
            raise LedgerError(f"{name} must be a privfeat ledger, got something else.")
        raise damaged(
            name, "it has no readable mark, or is of a release after this one"
        )
    mark = first_mark(min(mark.start for mark in marks))
    found, changes = {mark}, []
    while (end := content.find(b"\n", mark.end)) >= 0:
        body = content[mark.end : end][len(mark.digest) + 1 :]
        digest = _sha256(mark.digest.encode() + body)
        if content[mark.end : end] != digest.encode() + b" " + body:
            break
        mark = Mark(mark.start, end + 1, mark.n_lines + 1, digest)
        found.add(mark)
        try:
            changes.append(json.loads(body))
        except (RecursionError, ValueError) as error:
            raise damaged(name, "a line is not JSON") from error
    if not marks <= found:
        raise damaged(name, "what was charged is not as written, or cut off")
    counts = [-1 if slot is None else slot.n_lines for slot in slots]
    is_torn = -1 in counts
    if is_torn and not _as_killed(max(counts), mark, content):
        raise damaged(name, "a mark is not as written, and a charge may be cut off")
    place = MARK_BYTES if counts[1] < counts[0] else 0
    return Log(mark, place, is_torn, changes)


def _as_killed(n_marked: int, last: Mark, content: bytes) -> bool:
    """Return whether a process that writes one of the marks leaves it so if killed.

    Its line is there, and the last. Or the other mark has it already: of a ledger that
    was of SQLite, of which the first page stands there until the second is written.
    """
    first = content[:MARK_BYTES]
    pairs = enumerate(zip(last.render(), first, strict=True))
    place = next((i for i, (new, old) in pairs if new != old), MARK_BYTES)
    left, magic = first[place:], MAGIC[place:]
    # of that page, all zeros but for its head and a few: spaces fill a mark
    took_over = last.n_lines == 1 and left.count(b"\0") > left.count(b" ")
    took_over = took_over and left.startswith(magic)
    n_more = last.n_lines - n_marked
    return last.end == len(content) and (n_more == 1 or (n_more == 0 and took_over))


class LoggedRows:
    """The rows that all changes make, and the changes of this transaction."""

    def __init__(self, name: str, log: list[Any]) -> None:
        self._name = name
        self._tables: dict[str, dict[Any, Row]] = {table: {} for table in KEYS}
        self.changes: list[Any] = []
        try:
            for kind, table, row in (change for changes in log for change in changes):
                self._apply(kind, table, row)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise damaged(name, "its lines are no changes of rows") from error

    def select(self, table: str, dataset: str | None = None) -> list[Row]:
        """See `Transaction`."""
        rows = self._tables[table].values()
        return [dict(r) for r in rows if dataset is None or r["dataset"] == dataset]

    def insert(self, table: str, row: Row) -> None:
        """See `Transaction`."""
        self._apply("insert", table, row)
        self.changes.append(["insert", table, row])

    def update(self, table: str, row: Row) -> None:
        """See `Transaction`."""
        self._apply("update", table, row)
        self.changes.append(["update", table, row])

    def _apply(self, kind: str, table: str, row: Row) -> None:
        rows = self._tables[table]
        key = tuple(row[name] for name in KEYS[table])
        if (key in rows) != (kind == "update"):
            raise damaged(self._name, "a row is there twice, or not at all")
        rows[key] = {**rows.get(key, {}), **row}


def _read_mark(content: bytes) -> Mark | None:
    match = _MARK.fullmatch(content)
    if match is None:
        return None
    start, end, n_lines, digest = match.groups()
    mark = Mark(int(start), int(end), int(n_lines), digest.decode())
    return mark if mark.render() == content else None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
