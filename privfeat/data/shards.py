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
from contextlib import ExitStack
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray

from privfeat.data.schema import FeatureFileError, open_hdf5, read_attributes

SHARDS = "shards"


class Shard(NamedTuple):
    """What a joined file knows of one of its shards.

    Attributes
    ----------
    file : str
        Path from the folder of the joined file, with forward slashes.
    sha256 : str
        `fingerprint` of the shard.
    n_rows : dict of str to int
        Rows of each split.
    """

    file: str
    sha256: str
    n_rows: dict[str, int]

    def place(self, joined: str) -> str:
        """Return the path of the shard, given that of the joined file."""
        return os.path.normpath(os.path.join(os.path.dirname(joined), self.file))


class Part(NamedTuple):
    """Rows ``start`` to ``stop`` of a column, which are all rows of ``dataset``."""

    start: int
    stop: int
    dataset: h5py.Dataset


def fingerprint(file: h5py.File) -> str:
    """Return the SHA-256 of all attributes of a feature file and its splits.

    The attributes hold the arguments of the extraction, the number of rows and the
    checksum of every column, so another content has another fingerprint.
    """
    attributes = {"": read_attributes(file)}
    for name, group in file.items():
        if isinstance(group, h5py.Group):
            attributes[name] = read_attributes(group)
    text = json.dumps(attributes, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def read_shards(file: h5py.File) -> list[Shard]:
    """Return the shards of a joined file, an empty list for a plain one."""
    stored = read_attributes(file).get(SHARDS, [])
    return [Shard(**entry) for entry in stored]


def open_shard(path: str, shard: Shard) -> h5py.File:
    """Open one shard of the joined file ``path``.

    Raises
    ------
    FeatureFileError
        If it is missing, truncated or not the file that was joined.
    """
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
    if fingerprint(source) != shard.sha256:
        source.close()
        raise FeatureFileError(
            f"{place} must be the shard that was joined into {path}, but was replaced. "
            "Extract again, or join the shards again if they belong together."
        )
    return source


class Rows:
    """One column of an open feature file, in the file itself or in its shards.

    Parameters
    ----------
    path : str
        The feature file.
    dataset : str
        Such as ``"train/features"``.

    Attributes
    ----------
    parts : list of Part
        In order, without gaps; empty if there is no such dataset.

    Raises
    ------
    FeatureFileError
        If a shard is not the one that was joined.
    OSError
        If the file cannot be opened.
    """

    def __init__(self, path: str, dataset: str) -> None:
        self.parts: list[Part] = []
        with ExitStack() as stack:
            file = stack.enter_context(h5py.File(path, "r"))
            sources = [file]
            if _is_virtual(file.get(dataset)):
                sources = [
                    stack.enter_context(open_shard(path, shard))
                    for shard in read_shards(file)
                ]
            start = 0
            for source in sources:
                found = source.get(dataset)
                if isinstance(found, h5py.Dataset):
                    self.parts.append(Part(start, start + len(found), found))
                    start += len(found)
            self._files = stack.pop_all()

    def fit(self, shape: tuple[int, ...], dtype: Any) -> bool:
        """Whether the parts together have this shape and type."""
        return (
            bool(self.parts)
            and self.parts[-1].stop == shape[0]
            and all(part.dataset.shape[1:] == shape[1:] for part in self.parts)
            and all(part.dataset.dtype == dtype for part in self.parts)
        )

    def read_all(self) -> NDArray[Any]:
        """Return the whole column, if each part has the checksum that its file keeps.

        Raises
        ------
        FeatureFileError
            If a part was changed since it was written.
        """
        return np.concatenate([_read_checked(part.dataset) for part in self.parts])

    def close(self) -> None:
        """Close all files."""
        self._files.close()


def _read_checked(dataset: h5py.Dataset) -> NDArray[Any]:
    values: NDArray[Any] = dataset[()]
    split, _, column = dataset.name.strip("/").partition("/")
    stored = dataset.parent.attrs.get(f"{column}_crc32")
    if stored is not None and stored != zlib.crc32(values.tobytes()):
        raise FeatureFileError(
            f"{dataset.file.filename}: {column} of split {split!r} must have the "
            "checksum they were written with, but were changed. Extract it again."
        )
    return values


def check_shards(file: h5py.File, path: str) -> None:
    """Raise `FeatureFileError` unless all shards of a joined file are as they were.

    A virtual dataset without a list of shards is refused as well: nothing would tell
    whether its rows are there.
    """
    shards = read_shards(file)
    for name, group in file.items():
        columns = group.values() if isinstance(group, h5py.Group) else [group]
        if not any(_is_virtual(column) for column in columns):
            continue
        n_rows = sum(shard.n_rows.get(name, 0) for shard in shards)
        if n_rows != group.attrs.get("n_rows") or not shards:
            raise FeatureFileError(
                f"{path}: split {name!r} must list the shards of all its rows, but "
                "lists other numbers of rows. Join the shards again."
            )
    for shard in shards:
        open_shard(path, shard).close()


def _is_virtual(item: Any) -> bool:
    return isinstance(item, h5py.Dataset) and bool(item.is_virtual)
