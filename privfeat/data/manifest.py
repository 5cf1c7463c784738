"""The folder of an unfinished feature file: what of it counts, and who writes it.

``OUT.partial/`` holds parts, ``train.000000.h5`` and so on, each with some rows of all
columns of a split, and ``manifest.json``. Each of these files is written under another
name, synchronized and renamed; the manifest comes after the parts that it counts. So it
is true after a kill at any moment, and parts that it does not count are removed.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfeat._files import write_atomically
from privfeat.data.parts import Column, SplitParts
from privfeat.data.schema import DAMAGE, FeatureFileError, shown

if TYPE_CHECKING:
    from filelock import BaseFileLock

MANIFEST, MANIFEST_VERSION = "manifest.json", 1
OLD_MANIFEST = "journal.jsonl"  # of earlier releases, with rows in *.col


def partial_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder that holds the unfinished file ``path``."""
    return Path(f"{os.fspath(path)}.partial")


def lock_folder(folder: Path) -> "BaseFileLock":
    """Make the folder if missing, and keep other processes out of it.

    The system lets go of the lock when the process ends, even by a kill. A copied
    folder is free.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    # any thread may release what another one acquired
    lock = FileLock(folder / ".lock", timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise FeatureFileError(
            f"{folder} must not be in use, but another process is writing it. Wait for "
            "that process, or choose another output."
        ) from error
    return lock


def write_manifest(
    folder: Path, header: Mapping[str, Any], splits: Mapping[str, SplitParts]
) -> None:
    """Count all parts that are on disk."""
    manifest = {"version": MANIFEST_VERSION, **header, "splits": {}}
    for name, parts in splits.items():
        manifest["splits"][name] = {
            "columns": {
                name: [column.dtype, column.shape, column.crc32]
                for name, column in parts.columns.items()
            },
            "counts": [parts.n_rows, parts.n_skipped, parts.n_parts],
        }
    write_atomically(folder / MANIFEST, json.dumps(manifest).encode())


def read_manifest(folder: Path, header: Mapping[str, Any]) -> dict[str, SplitParts]:
    """Return the splits of an earlier run, none if there was no such run.

    Parameters
    ----------
    folder : Path
        The partial folder.
    header : mapping
        As for `write_manifest`; ``arguments`` are compared one by one.

    Raises
    ------
    FeatureFileError
        If the manifest is unreadable or of another header, or rows were changed.
    """
    unreadable = FeatureFileError(
        f"{folder} must hold a manifest of version {MANIFEST_VERSION}, but what it "
        "holds is not readable as one. Start again with overwrite."
    )
    if not (folder / MANIFEST).exists():
        if (folder / OLD_MANIFEST).exists():
            raise unreadable
        return {}
    splits = {}
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        if manifest.pop("version") != MANIFEST_VERSION:
            raise ValueError("another version")
        for name, state in manifest.pop("splits").items():
            columns = {
                name: Column(dtype, tuple(shape), crc32)
                for name, (dtype, shape, crc32) in state["columns"].items()
            }
            splits[name] = SplitParts(folder, name, columns, *state["counts"])
        then = {**manifest, **manifest.pop("arguments")}
    except DAMAGE as error:
        raise unreadable from error
    now = {**header, **header["arguments"]}
    for name in sorted({*then, *now} - {"arguments"}):
        if then.get(name) != now.get(name):
            raise FeatureFileError(
                f"{folder} must be continued with the arguments it was begun with, but "
                f"{name} was {shown(name, then)} and is {shown(name, now)}. Use the "
                "first arguments, another output, or overwrite."
            )
    for parts in splits.values():
        parts.check()
    return splits


def remove_uncounted(folder: Path, splits: Mapping[str, SplitParts]) -> None:
    """Remove all files of earlier runs but the parts of ``splits``."""
    counted = {p.path(number) for p in splits.values() for number in range(p.n_parts)}
    if splits:
        counted.add(folder / MANIFEST)
    for pattern in (MANIFEST, OLD_MANIFEST, "*.h5", ".*.tmp", "*.col"):
        for path in {*folder.glob(pattern)} - counted:
            path.unlink()
