"""The unfinished feature file: parts, which are never changed, in a folder.

``OUT.partial/`` holds ``000000.h5``, ``000001.h5`` and so on: each has some rows of one
split, their checksums, and the arguments of the run. A part is written under another
name, synchronized and renamed before the next one is begun. So a kill at any moment
leaves the first parts of a run, and the next run continues after them.
"""

import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from numpy.typing import NDArray

from privfeat._files import put_in_place
from privfeat.data.schema import (
    COLUMNS,
    FeatureFileError,
    chunk_rows,
    read_attributes,
    refused_if_damaged,
    shown,
    write_attributes,
)
from privfeat.data.writing.sink import Sink, new_hdf5

if TYPE_CHECKING:
    from filelock import BaseFileLock

BLOCK_BYTES = 4 << 20
_refused_if_changed = partial(
    refused_if_damaged,
    must="hold the rows that were written",
    remedy="Start again with overwrite.",
)


@dataclass
class SplitRows:
    """The rows of one split: in parts on disk, the last ones in memory."""

    columns: dict[str, np.dtype[Any]]  # of a row, with its shape
    n_rows: int = 0  # those in memory included
    n_skipped: int = 0  # records that gave no row
    parts: list[Path] = field(default_factory=list)
    batches: list[dict[str, NDArray[Any]]] = field(default_factory=list)  # in memory
    n_new_skipped: int = 0  # of n_skipped, those that no part counts

    def write(self, path: Path, about: Mapping[str, Any]) -> None:
        """Move the rows in memory to a new part."""
        crc32 = {}
        temporary = path.with_name(f".{path.name}.tmp")
        with new_hdf5(temporary, final=path.parent) as (file, _):
            for name in self.columns:
                rows = np.concatenate([batch[name] for batch in self.batches])
                crc32[name] = zlib.crc32(rows.data)
                file[name] = rows
            counts = {"n_skipped": self.n_new_skipped, "crc32": crc32}
            write_attributes(file, {**about, **counts})
        put_in_place(temporary, path)
        self.parts.append(path)
        self.batches, self.n_new_skipped = [], 0

    def blocks(self, name: str) -> Iterator[NDArray[Any]]:
        """Yield the rows of a column on disk, in blocks of one size whatever the parts.

        FeatureFileError if a part was changed since it was written.
        """
        kind = self.columns[name]
        rest = np.empty(0, kind)
        step = max(1, BLOCK_BYTES // max(1, kind.itemsize))
        for path in self.parts:
            rows = _read_column(path, name)
            rest = np.concatenate([rest, rows]) if len(rest) else rows
            while len(rest) >= step:
                yield rest[:step]
                rest = rest[step:]
        if len(rest):
            yield rest

    def store(self, group: h5py.Group, sink: Sink) -> None:
        """Copy the rows on disk into a group of the file ``sink``."""
        for name in (name for name in COLUMNS if name in self.columns):
            kind = self.columns[name]
            options: dict[str, Any] = {}
            if name == "features":
                options["chunks"] = (
                    chunk_rows(self.n_rows, kind.itemsize),
                    *kind.shape,
                )
                options["maxshape"] = (None, *kind.shape)
            shape = (self.n_rows, *kind.shape)
            target = group.create_dataset(name, shape, kind.base, **options)
            start = crc32 = 0
            for block in self.blocks(name):
                target[start : start + len(block)] = block
                start += len(block)
                crc32 = zlib.crc32(block.data, crc32)
                sink.check()
            group.attrs[f"{name}_crc32"] = crc32
        group.attrs["n_rows"] = self.n_rows
        group.attrs["n_skipped"] = self.n_skipped


def kind_of_rows(column: NDArray[Any] | h5py.Dataset) -> np.dtype[Any]:
    """Return the type of one row, with its shape."""
    return np.dtype((column.dtype, column.shape[1:]))


def partial_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder that holds the unfinished file ``path``."""
    return Path(f"{os.fspath(path)}.partial")


def find_parts(folder: Path) -> list[Path]:
    """Return the parts that are there, in order."""
    return sorted(folder.glob("[0-9]*.h5"))


def read_parts(folder: Path, arguments: Mapping[str, Any]) -> dict[str, SplitRows]:
    """Return the rows of an earlier run by their split, none if there was no such run.

    FeatureFileError if a part is lost or was changed, or if the run had other
    arguments.
    """
    splits: dict[str, SplitRows] = {}
    for number, path in enumerate(find_parts(folder)):
        with _refused_if_changed(folder), h5py.File(path, "r") as file:
            about = read_attributes(file)
            if about["number"] != number:
                raise ValueError("a part before this one is lost")
            then = about["arguments"]
            for name in sorted({*then, *arguments}):
                if then.get(name) != arguments.get(name):
                    raise FeatureFileError(
                        f"{folder} must be continued with the arguments it was begun "
                        f"with, but {name} was {shown(name, then)} and is "
                        f"{shown(name, arguments)}. Use the first arguments, another "
                        "output, or overwrite."
                    )
            columns = {name: kind_of_rows(file[name]) for name in about["crc32"]}
            split = splits.setdefault(about["split"], SplitRows(columns))
            for name in columns:
                n_rows = len(_read_column(path, name))
            split.n_rows += n_rows
            split.n_skipped += about["n_skipped"]
            split.parts.append(path)
    return splits


def _read_column(path: Path, name: str) -> NDArray[Any]:
    with _refused_if_changed(path), h5py.File(path, "r") as file:
        rows: NDArray[Any] = file[name][()]
        if zlib.crc32(rows.data) != read_attributes(file)["crc32"][name]:
            raise ValueError("other rows than those that were written")
    return rows


def lock_folder(folder: Path) -> "BaseFileLock":
    """Make the folder if missing; keep other processes out while this one lives.

    A copied folder is free.
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
