"""Files that appear whole or not at all, and what HDF5 keeps whole in them."""

import math
import os
import shutil
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

LEDGER = b"privfeat ledger "  # how its file begins
# Filters that lose nothing: those of HDF5, LZF, Blosc, LZ4, bitshuffle, Zstandard.
_LOSSLESS = {1, 2, 3, 4, 32000, 32001, 32004, 32008, 32015}
NOT_WHOLE = (
    "some that lie in other files, were never written (HDF5 reads zeros where they are "
    "missing), or have a filter that may round them. Copy them into one file, with "
    "gzip or without a filter."
)


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


def is_whole(dataset: Any) -> bool:
    """Return whether all values of a dataset are stored in its own file, as they are.

    By ``scaleoffset`` the least value of a part may decide how others are rounded, and
    what a filter of a plug-in does only its authors know.
    """
    how = dataset.id.get_create_plist()
    filters = {how.get_filter(place)[0] for place in range(how.get_nfilters())}
    if dataset.is_virtual or dataset.external or not filters <= _LOSSLESS:
        return False
    if dataset.chunks is None:
        return bool(dataset.id.get_storage_size() >= dataset.nbytes)
    chunks = map(math.ceil, np.divide(dataset.shape, dataset.chunks))
    return bool(dataset.id.get_num_chunks() == math.prod(chunks))
