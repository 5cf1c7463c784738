"""Open a feature file, check it, and hand out its splits."""

import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from privfeat.data.lazy import LazyFeatures
from privfeat.data.schema import (
    ORIGIN,
    WITHOUT_DUPLICATES,
    FeatureFileError,
    check_root,
    open_hdf5,
    read_attributes,
    read_columns,
    refused_if_damaged,
)
from privfeat.data.shards import (
    check_shards,
    fingerprint_of,
    open_parts,
    read_checked,
    read_shards,
)


@dataclass(eq=False, repr=False)
class FeatureSplit:
    """One split of a feature file.

    Attributes
    ----------
    name : str
        Name of the split, such as ``"train"``.
    features : LazyFeatures of shape (n_samples, n_features)
        Read when asked for.
    class_names : tuple of str, or None
        Names of the classes, if known.
    metadata : dict
        Attributes of the split: ``n_rows``, ``n_skipped``, ``file_list_sha256``.
    columns : dict of str to (tuple of int, str)
        Shape and type of ``features``, ``labels`` and, if stored, ``groups``.
    made : str
        The fingerprint of the file, which must stay the same while it is read.
    """

    name: str
    features: LazyFeatures
    class_names: tuple[str, ...] | None
    metadata: dict[str, Any]
    columns: dict[str, tuple[tuple[int, ...], str]]
    made: str

    @property
    def X(self) -> LazyFeatures:
        """The features, under the name that scikit-learn uses."""
        return self.features

    @property
    def y(self) -> NDArray[Any]:
        """The labels, under the name that scikit-learn uses."""
        return self.labels

    @cached_property
    def labels(self) -> NDArray[Any]:
        """(n_samples,) int64 indices of classes, or (n_samples, m) uint8 indicators."""
        return self._read("labels")

    @cached_property
    def groups(self) -> NDArray[Any] | None:
        """(n_samples,) int64: the user of each row, if stored."""
        return self._read("groups") if "groups" in self.columns else None

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        return f"FeatureSplit({self.name!r}, shape={self.features.shape})"

    def _read(self, column: str) -> NDArray[Any]:
        """Return a whole column of the split, read-only, if its checksum is right."""
        path, (shape, dtype) = self.features.path, self.columns[column]
        with refused_if_damaged(path):
            name = f"{self.name}/{column}"
            parts, files = open_parts(path, name, shape, dtype, self.made)
            with files:
                values = np.concatenate([read_checked(part.dataset) for part in parts])
        values.flags.writeable = False
        return values


class FeatureFile(Mapping[str, FeatureSplit]):
    """A checked feature file: a mapping from split names to splits.

    Attributes
    ----------
    path : str
        Where the file is.
    metadata : dict
        All attributes as stored, some of them sensitive (``n_rows``): it stays at home;
        ``origin`` may be published.
    class_names : tuple of str, or None
        Names of the classes, if known; label ``i`` means ``class_names[i]``.
    n_features : int
        Number of columns of every split.
    shards : tuple of str
        The files that hold the rows of a joined file, in order; empty for others.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        self._splits: dict[str, FeatureSplit] = {}
        with refused_if_damaged(self.path), open_checked(self.path) as file:
            self.metadata = read_attributes(file)
            check_shards(file, self.path)
            shards = read_shards(file)
            self.shards = tuple(shard.place(self.path) for shard in shards)
            names = file["class_names"].asstr()[()] if "class_names" in file else None
            self.class_names = None if names is None else tuple(names)
            self.n_features = int(self.metadata.get("n_features", -1))
            dtype = str(self.metadata.get("feature_dtype"))
            made = fingerprint_of(file)
            for name, group in file.items():
                if isinstance(group, h5py.Group):
                    columns = read_columns(group, self.path, self.n_features, dtype)
                    metadata = read_attributes(group)
                    features = LazyFeatures(
                        self.path,
                        f"{name}/features",
                        *columns["features"],
                        has_groups="groups" in columns,
                        made=made,
                        chosen_by=(*metadata.get(WITHOUT_DUPLICATES, ()),),
                        shards=tuple(shard.sha256 for shard in shards),
                        # earlier releases took train[:300] for a split
                        limited=self.metadata.get("limit") is not None
                        or {"[", ":"} <= {*name},
                    )
                    self._splits[name] = FeatureSplit(
                        name, features, self.class_names, metadata, columns, made
                    )
        n_rows = sum(len(split) for split in self._splits.values())
        if n_rows != self.metadata.get("n_rows"):
            raise FeatureFileError(
                f"{self.path} must hold n_rows rows over all splits, got another "
                "number. Extract or copy it again."
            )

    @property
    def origin(self) -> dict[str, Any]:
        """How the features were made, of ``metadata``: no record decides it."""
        return {name: self.metadata[name] for name in ORIGIN if name in self.metadata}

    def __getitem__(self, name: str) -> FeatureSplit:
        if name not in self._splits:
            raise KeyError(
                f"split must be one of {sorted(self._splits)}, got {name!r}."
            )
        return self._splits[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._splits)

    def __len__(self) -> int:
        return len(self._splits)

    def __repr__(self) -> str:
        splits = ", ".join(f"{n}: {s.features.shape}" for n, s in self._splits.items())
        return f"FeatureFile({os.path.basename(self.path)!r}, {{{splits}}})"

    def __reduce__(self) -> tuple[type["FeatureFile"], tuple[str]]:
        return FeatureFile, (self.path,)

    def __enter__(self) -> "FeatureFile":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the features of all splits; labels that were read stay usable."""
        for split in self._splits.values():
            split.features.close()

    def verify(self, *, chunk_rows: int = 8192) -> None:
        """Read every feature, ``chunk_rows`` rows at a time, and compare checksums.

        Raises
        ------
        FeatureFileError
            If a split, here or in a shard, was changed since it was written.
        """
        for shard in self.shards:
            with FeatureFile(shard) as file:
                file.verify(chunk_rows=chunk_rows)
        for split in () if self.shards else self._splits.values():
            crc32 = 0
            for start in range(0, len(split), chunk_rows):
                rows = split.features[start : start + chunk_rows]
                crc32 = zlib.crc32(rows.data, crc32)
            if crc32 != split.metadata.get("features_crc32"):
                raise FeatureFileError(
                    f"{self.path}: features of split {split.name!r} must have the "
                    "checksum they were written with, but were changed. Extract it "
                    "again."
                )


def open_features(path: str | os.PathLike[str]) -> FeatureFile:
    """Open a feature file written by ``privfeat-extract`` or `write_features`.

    Parameters
    ----------
    path : str or path-like
        The HDF5 file, plain or joined.

    Returns
    -------
    file : FeatureFile
        Mapping from split names to `FeatureSplit`; also a context manager.

    Raises
    ------
    FeatureFileError
        If the file, or a shard of it, is missing, incomplete, truncated, inconsistent,
        of another kind, or of an unknown version.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from privfeat.data import open_features, write_features
    >>> X, y = np.eye(3, dtype=np.float16), np.array([0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tiny.h5")
    ...     write_features(path, {"train": (X, y)}, class_names=["cat", "dog"])
    ...     with open_features(path) as file:
    ...         train = file["train"]
    ...         print(train.X.shape, train.y, train.class_names, train.X[1:2])
    (3, 3) [0 1 1] ('cat', 'dog') [[0. 1. 0.]]
    """
    return FeatureFile(path)


def open_checked(path: str) -> h5py.File:
    """Open a feature file and check its root, but neither splits nor shards."""
    if not os.path.exists(path):
        hint = ""
        if any(os.path.isdir(path + suffix) for suffix in (".partial", ".shards")):
            hint = " Its extraction is unfinished: run the same command again."
        raise FeatureFileError(f"{path} must exist, but there is no such file.{hint}")
    if os.path.isdir(path):
        raise FeatureFileError(
            f"{path} must be a feature file, but is a folder. Make one of images with "
            "privfeat-extract --data FOLDER."
        )
    file = open_hdf5(
        path,
        "must be a readable HDF5 file, but is truncated, damaged or of another kind",
        "Make one of images with privfeat-extract, of arrays with "
        "privfeat.data.write_features.",
    )
    try:
        with refused_if_damaged(path):
            check_root(file, path)
    except FeatureFileError:
        file.close()
        raise
    return file
