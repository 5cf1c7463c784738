"""A feature matrix on disk that behaves like a read-only NumPy array."""

import math
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from privfeat._messages import without_data
from privfeat.data.schema import FeatureFileError, chunk_rows, refused_if_damaged
from privfeat.data.shards import Part, open_parts

_LINE_BYTES = 64
_CHECKED_BYTES = 2**22


class OnDisk(ABC):
    """What behaves like a read-only NumPy array, and is read when it is indexed."""

    shape: tuple[int, ...]

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Return some rows, or images."""

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        if copy is False:
            raise ValueError(
                "copy must be None or True, got False. What is on disk is always "
                "copied into memory."
            )
        values = self[:]
        return values if dtype is None else values.astype(dtype, copy=False)


@dataclass(eq=False, repr=False)
class LazyFeatures(OnDisk):
    """Rows of one dataset of a feature file, read when they are asked for.

    Parameters
    ----------
    path, dataset : str
        The HDF5 file, and the name of the dataset, such as ``"train/features"``.
    shape : tuple of int
        (n_samples, n_features).
    dtype : dtype-like
        float16 or float32.
    has_groups : bool
        Whether the file says whose each row is.
    made : str, optional
        What ``shards.fingerprint_of`` the file must be.
    chosen_by : tuple of str
        Fingerprints of the files whose near-duplicates were left out of these rows.
    shards : tuple of str
        Fingerprints of the files that hold the rows of a joined one.
    limited : bool
        Whether they are the first ones of their records alone.

    Notes
    -----
    The file is opened at the first read, once per process, so an instance can be
    pickled (by path) and used after a fork. ``numpy.asarray(features)`` reads it all.
    """

    path: str
    dataset: str
    shape: tuple[int, ...]
    dtype: Any
    has_groups: bool = False
    made: str | None = None
    chosen_by: tuple[str, ...] = ()
    shards: tuple[str, ...] = ()
    limited: bool = False

    ndim = 2
    _pid = -1  # of the process that opened the file
    _closed = False

    def __post_init__(self) -> None:
        self.path, self.dtype = os.path.abspath(self.path), np.dtype(self.dtype)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes that the whole matrix takes in memory."""
        return self.size * int(self.dtype.itemsize)

    def __repr__(self) -> str:
        return (
            f"LazyFeatures({os.path.basename(self.path)!r}, {self.dataset!r}, "
            f"shape={self.shape}, dtype={self.dtype})"
        )

    def __reduce__(self) -> tuple[type["LazyFeatures"], tuple[Any, ...]]:
        return LazyFeatures, tuple(getattr(self, one.name) for one in fields(self))

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Return rows; indices as for a NumPy matrix, columns after rows were read.

        Raises
        ------
        IndexError
            If an index is out of range or of the wrong kind.
        """
        if isinstance(key, tuple):
            if not key or key[0] is Ellipsis:
                return self.read(0, len(self))[key]
            columns = tuple(part for part in key[1:] if part is not Ellipsis)
            return self[key[0]][(..., *columns)] if columns else self[key[0]]
        if key is Ellipsis:
            key = slice(None)
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self.read(start, max(start, stop))
            return self.read_rows(np.arange(start, stop, step))
        index = np.asarray(key)
        if index.dtype == bool:
            if index.shape != (len(self),):
                raise IndexError("a boolean index must have one entry for each row.")
            return self.read_rows(np.flatnonzero(index))
        if index.ndim == 0 and index.dtype.kind in "iu":
            return np.asarray(self.read_rows(index[None])[0])
        return self.read_rows(index)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the rows from ``start`` up to but not including ``stop``.

        Raises
        ------
        IndexError
            Unless ``0 <= start <= stop <= len(self)``.
        FeatureFileError
            If the file is closed, gone, or not the one that was opened.
        """
        if not 0 <= start <= stop <= len(self):
            raise IndexError(
                f"rows must be some of those that there are, got {start} to {stop}."
            )
        rows = _aligned(stop - start, self.shape[1], self.dtype)
        with refused_if_damaged(self.path):
            for part in self._open():
                first, last = max(start, part.start), min(stop, part.stop)
                if first < last:
                    part.dataset.read_direct(
                        rows,
                        np.s_[first - part.start : last - part.start],
                        np.s_[first - start : last - start],
                    )
        return rows

    def check_finite(self, held: slice) -> None:
        """Read rows once, so that a fit meets what is wrong with them uncharged.

        Raises
        ------
        ValueError
            If one holds NaN or infinity.
        FeatureFileError
            As for `read`; a damaged part of the file is found here.
        """
        start, stop, _ = held.indices(len(self))
        bits = np.dtype(f"u{self.dtype.itemsize}")
        exponent = np.array(np.inf, self.dtype).view(bits)
        n_rows = max(1, _CHECKED_BYTES // max(1, self.shape[1] * self.dtype.itemsize))
        for first in range(start, stop, n_rows):
            rows = self.read(first, min(first + n_rows, stop)).view(bits)
            # a third of the time of numpy.isfinite
            if not (rows & exponent).max(initial=0) < exponent:
                raise ValueError("X must not contain NaN or infinity.")

    def read_rows(self, indices: ArrayLike) -> NDArray[Any]:
        """Return the rows with the given numbers, in that order.

        Parameters
        ----------
        indices : array-like of int, shape (m,)
            In any order, repeats allowed; negative ones count from the end.

        Raises
        ------
        IndexError
            If an index is not an integer or out of range.
        FeatureFileError
            As for `read`.
        """
        index = np.asarray(indices)
        if index.size == 0:
            return np.empty((0, self.shape[1]), self.dtype)
        if index.ndim != 1 or index.dtype.kind not in "iu":
            raise IndexError(
                "indices must be a one-dimensional array of integers, "
                f"got {index.ndim} dimensions and type {index.dtype}."
            )
        if int(index.min()) < -len(self) or int(index.max()) >= len(self):
            raise IndexError("indices must be of rows that there are.")
        index = np.where(index < 0, index + len(self), index).astype(np.intp)
        rows = without_data(np.empty, (len(index), self.shape[1]), self.dtype)
        with refused_if_damaged(self.path):
            for part in self._open():
                here = np.flatnonzero((index >= part.start) & (index < part.stop))
                if here.size:
                    rows[here] = gathered(part.dataset, index[here] - part.start)
        return rows

    def shares_rows(self, other: "LazyFeatures") -> bool:
        """Return whether both read some data set, by whatever path and in what shard.

        FeatureFileError as for `read`.
        """
        own, others = ({part.dataset for part in it._open()} for it in (self, other))
        return not own.isdisjoint(others)

    def close(self) -> None:
        """Close the file; later reads raise `FeatureFileError`."""
        if self._pid == os.getpid():
            self._files.close()
        self._closed = True

    def _open(self) -> list[Part]:
        """Return the parts that hold the rows, opened anew in a forked process."""
        if self._closed:
            raise FeatureFileError(
                f"{self.path} must be open, but was closed. Read the features inside "
                "the 'with' block, or call open_features without 'with'."
            )
        if self._pid != os.getpid():
            self._parts, self._files = open_parts(
                self.path, self.dataset, self.shape, self.dtype, self.made
            )
            self._pid = os.getpid()
        return self._parts


def _aligned(n_rows: int, n_columns: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return memory for rows where a cache line begins: JAX copies it otherwise."""
    n_bytes = n_rows * n_columns * dtype.itemsize
    memory = without_data(np.empty, n_bytes + _LINE_BYTES, np.uint8)
    start = -memory.ctypes.data % _LINE_BYTES
    return memory[start : start + n_bytes].view(dtype).reshape(n_rows, n_columns)


def gathered(dataset: h5py.Dataset, index: NDArray[np.intp]) -> NDArray[Any]:
    """Read arbitrary rows chunk by chunk: far faster than HDF5's own selection.

    Of a dataset without chunks, rows that are close together are read at once.
    """
    rows = np.empty((len(index), *dataset.shape[1:]), dataset.dtype)
    order = np.argsort(index, kind="stable")
    wanted = index[order]
    row_bytes = math.prod(dataset.shape[1:]) * dataset.dtype.itemsize
    block = (dataset.chunks or (chunk_rows(1024, row_bytes),))[0]
    cuts = np.flatnonzero(np.diff(wanted // block)) + 1
    for part in np.split(np.arange(len(wanted)), cuts):
        if part.size:
            first, last = wanted[part[0]], wanted[part[-1]]
            rows[order[part]] = dataset[first : last + 1][wanted[part] - first]
    return rows
