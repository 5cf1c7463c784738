"""The shards of a joined feature file, and rows wherever they lie.

A joined file holds virtual datasets, and HDF5 gives a constant in the place of rows
whose source it does not find. So nothing is read through them here: shards are opened
one by one, compared with the fingerprints that the joined file keeps, and read
themselves. An open shard stays the same file even if its name is taken away.
"""

import hashlib
import json
import os
import zlib
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from privfeat._files import NOT_WHOLE, is_whole
from privfeat.data.schema import (
    FeatureFileError,
    open_hdf5,
    read_all_attributes,
    read_attributes,
)

SHARDS = "shards"


class Shard(NamedTuple):
    """What a joined file knows of one of its shards: a `fingerprint`, rows by split."""

    file: str  # path from the folder of the joined file, with forward slashes
    sha256: str
    n_rows: dict[str, int]

    def place(self, joined: str) -> str:
        """Return the path of the shard, given that of the joined file."""
        return os.path.normpath(os.path.join(os.path.dirname(joined), self.file))


def fingerprint(root: Mapping[str, Any], splits: Mapping[str, Any]) -> str:
    """Return the SHA-256 of all attributes of a feature file and its splits.

    The attributes hold the arguments of the extraction, the number of rows and the
    checksum of every column, so another content has another fingerprint.
    """
    text = json.dumps({"": root, **splits}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def fingerprint_of(file: h5py.File) -> str:
    """Return the `fingerprint` of an open file."""
    attributes = read_all_attributes(file)
    return fingerprint(attributes.pop(""), attributes)


def read_shards(file: h5py.File) -> list[Shard]:
    """Return the shards of a joined file, an empty list for a plain one."""
    return [Shard(**entry) for entry in read_attributes(file).get(SHARDS, [])]


def check_shards(file: h5py.File, path: str) -> None:
    """Raise `FeatureFileError` unless all shards of a joined file are as they were.

    A virtual dataset without a list of shards is refused as well: nothing would tell
    whether its rows are there.
    """
    shards = read_shards(file)
    for name, group in file.items():
        columns = group.values() if _is_split(group) else [group]
        if not any(_is_virtual(column) for column in columns):
            continue
        n_rows = sum(shard.n_rows.get(name, 0) for shard in shards)
        if n_rows != group.attrs.get("n_rows") or not shards:
            raise FeatureFileError(
                f"{path}: split {name!r} must list the shards of all its rows, but "
                "lists other numbers of rows. Join the shards again."
            )
    for shard in shards:
        _open_shard(path, shard).close()


class Part(NamedTuple):
    """Rows ``start`` to ``stop`` of a column, which are all rows of ``dataset``."""

    start: int
    stop: int
    dataset: h5py.Dataset


def open_parts(
    path: str,
    dataset: str,
    shape: tuple[int, ...],
    dtype: DTypeLike,
    made: str | None = None,
) -> tuple[list[Part], ExitStack]:
    """Open a column wherever its rows lie; closing the second result closes all files.

    FeatureFileError if it has another shape or type, the file is not the one whose
    `fingerprint_of` is ``made``, a shard is not the one that was joined, or HDF5 may
    give other values than were written. Labels or users of one file beside features of
    another would be those of other records.
    OSError if the file cannot be opened.
    """
    with ExitStack() as stack:
        file = stack.enter_context(h5py.File(path, "r"))
        sources = [file]
        same = made is None or fingerprint_of(file) == made
        if _is_virtual(file.get(dataset)):
            shards = read_shards(file)
            sources = [stack.enter_context(_open_shard(path, s)) for s in shards]
        found = [source[dataset] for source in sources if dataset in source]
        kinds = {(part.shape[1:], part.dtype) for part in found}
        starts = np.cumsum([0, *(len(part) for part in found)])
        alike = kinds == {(shape[1:], np.dtype(dtype))} and starts[-1] == shape[0]
        if not (same and alike):
            raise FeatureFileError(
                f"{path} must hold {dataset!r} as it was opened, but was changed. Open "
                "it again."
            )
        if not all(map(is_whole, found)):
            raise FeatureFileError(
                f"{path} must hold {dataset!r} whole, got {NOT_WHOLE}"
            )
        parts = [*map(Part, starts, starts[1:], found)]
        return parts, stack.pop_all()


def read_checked(dataset: h5py.Dataset) -> NDArray[Any]:
    """Return a whole column, if it has the checksum that its file keeps."""
    values: NDArray[Any] = dataset[()]
    split, _, column = dataset.name.strip("/").partition("/")
    stored = dataset.parent.attrs.get(f"{column}_crc32")
    if stored is not None and stored != zlib.crc32(values.data):
        raise FeatureFileError(
            f"{dataset.file.filename}: {column} of split {split!r} must have the "
            "checksum they were written with, but were changed. Extract it again."
        )
    return values


def _open_shard(path: str, shard: Shard) -> h5py.File:
    """Open one shard of the joined file ``path``, if it is the one that was joined."""
    place = shard.place(path)
    if not os.path.exists(place):
        raise FeatureFileError(
            f"{path} needs its shard {shard.file}, but there is no such file. Move or "
            "copy the folder of the shards together with it, or extract it again."
        )
    source = open_hdf5(
        place,
        "must be a readable shard, but is truncated or damaged",
        "Delete it and run its extraction again.",
    )
    if fingerprint_of(source) != shard.sha256:
        source.close()
        raise FeatureFileError(
            f"{place} must be the shard that was joined into {path}, but was replaced. "
            "Extract again, or join the shards again if they belong together."
        )
    return source


def _is_split(item: Any) -> bool:
    return isinstance(item, h5py.Group)


def _is_virtual(item: Any) -> bool:
    return isinstance(item, h5py.Dataset) and bool(item.is_virtual)
