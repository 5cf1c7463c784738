"""Files that appear whole or not at all."""

import os
import shutil
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

LEDGER = b"privfeat ledger "  # how its file begins


def write_atomically(
    path: str | os.PathLike[str],
    content: bytes | Iterable[bytes],
    *,
    like: str | os.PathLike[str] | None = None,
) -> None:
    """Write a file so that it appears under its name whole or not at all.

    What raises while parts of the ``content`` are made leaves no file.
    A link stays one. Who may read the file that it replaces, or the one that it is
    ``like``, may read it, nobody else.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            _take_mode(temporary, target if like is None else Path(like))
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(file.fileno())
        put_in_place(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def put_in_place(temporary: Path, target: Path) -> None:
    """Rename a file that is on disk; wait for the new name where a system can.

    ValueError if it would replace a ledger: all charges would be gone.
    """
    check_no_ledger(target)
    _take_mode(temporary, target)
    temporary.replace(target)
    with suppress(OSError):  # not all systems can synchronize a folder
        handle = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_no_ledger(target: Path) -> None:
    """Raise ValueError if a file that would be replaced is a ledger."""
    with suppress(OSError), target.open("rb") as before:
        if before.read(len(LEDGER)) == LEDGER:
            raise ValueError(f"{target} must not be replaced: it is a ledger.")


def _take_mode(temporary: Path, target: Path) -> None:
    """Give a file the mode and the group of another one, if that is there."""
    with suppress(OSError):
        shutil.copymode(target, temporary)
        if hasattr(os, "chown"):
            os.chown(temporary, -1, target.stat().st_gid)
