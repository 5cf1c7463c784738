"""Write a feature file in pieces, safe against a kill at any moment."""

import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfeat._checks import check_class_names
from privfeat._files import put_in_place
from privfeat.data.reader import open_features
from privfeat.data.schema import (
    FEATURE_DTYPES,
    RESERVED,
    require_free,
    write_attributes,
    write_root,
)
from privfeat.data.writing.columns import as_columns, warn_of_zeros
from privfeat.data.writing.parts import (
    SplitRows,
    find_parts,
    kind_of_rows,
    lock_folder,
    partial_folder,
    read_parts,
)
from privfeat.data.writing.sink import new_hdf5

PART_BYTES = 16 << 20


class Position(NamedTuple):
    """How far a split has been written: records met, and rows that they gave."""

    seen: int
    n_rows: int


class FeatureWriter:
    """Collect the rows of a feature file and publish the file when it is complete.

    Parameters
    ----------
    path : str or path-like
        The file to write. It appears, whole, when `finish` succeeds; until then all
        is kept in the folder ``path + ".partial"``.
    n_features : int
        Number of columns, > 0.
    dtype : {"float16", "float32"}
        Type of the stored features.
    arguments : mapping of str to JSON-like value
        What determines the features. Only a run with equal arguments is continued.
    overwrite : bool
        Discard an existing file or partial folder.
    flush_seconds : float
        At most about this much work is lost by a kill.

    Attributes
    ----------
    resumed : bool
        Whether an earlier, interrupted run is being continued.

    Raises
    ------
    FeatureFileError
        If the file exists, the partial folder is in use, damaged, or belongs to other
        arguments.
    ValueError
        If ``n_features`` or ``dtype`` is out of range.

    Notes
    -----
    A process may be killed at any moment: the next one continues at the last flush, and
    there is never a file that is short. ``parts.py`` says how.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        n_features: int,
        dtype: str = "float16",
        arguments: Mapping[str, Any] | None = None,
        overwrite: bool = False,
        flush_seconds: float = 5.0,
    ) -> None:
        if not n_features > 0:
            raise ValueError(f"n_features must be > 0, got {n_features}.")
        if dtype not in FEATURE_DTYPES:
            raise ValueError(f"dtype must be one of {FEATURE_DTYPES}, got {dtype!r}.")
        self.path = Path(os.path.realpath(path))  # a link stays one
        self.partial = partial_folder(path)
        self.n_features, self.dtype = int(n_features), dtype
        require_free(self.path, overwrite=overwrite)
        self._arguments = {
            "n_features": self.n_features,
            "dtype": dtype,
            **(arguments or {}),
        }
        self._flush_seconds = flush_seconds
        self._last_flush = time.monotonic()
        self._bytes_in_memory = 0
        self._with_zeros: set[str] = set()
        self._lock = lock_folder(self.partial)
        try:
            if overwrite:  # last parts first, so that a kill leaves the first ones
                for part in reversed(find_parts(self.partial)):
                    part.unlink()
            self._splits = read_parts(self.partial, self._arguments)
        except BaseException:
            self._lock.release()
            raise
        self.resumed = bool(self._splits)
        self._to_ask = {*self._splits}  # splits whose `position` was not asked

    def position(self, split: str) -> Position:
        """Return how far ``split`` has been written, (0, 0) if not begun."""
        self._to_ask.discard(split)
        rows = self._splits.get(split, SplitRows({}))
        return Position(rows.n_rows + rows.n_skipped, rows.n_rows)

    def n_skipped(self, split: str) -> int:
        """Return how many records of ``split`` gave no row."""
        return self._splits.get(split, SplitRows({})).n_skipped

    def labels(self, split: str) -> NDArray[Any]:
        """Return the labels of ``split`` written so far."""
        self.flush()
        rows = self._splits[split]
        empty = np.empty(0, rows.columns["labels"])
        return np.concatenate([empty, *rows.blocks("labels")])

    def append(
        self,
        split: str,
        features: ArrayLike,
        labels: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        skipped: Iterable[str] = (),
    ) -> None:
        """Add rows to a split.

        Parameters
        ----------
        split : str
            Name of the split, without a slash.
        features : array-like of shape (m, n_features)
            Converted to ``dtype``, finite after that.
        labels : array-like of shape (m,) int, or (m, k) of zeros and ones
            One entry per row; of rows to predict, which have none, -1. Number names by
            a public list of all classes: numbers that ``pandas.factorize`` or
            ``LabelEncoder`` make of the labels move with single records.
        groups : array-like of shape (m,) int, optional
            The number of the user of each row, different for different users, below
            2**63; not -1, which means no user. For all rows of a split or for none.
        skipped : iterable of str
            Records among these that gave no row: counted, not kept.

        Raises
        ------
        TypeError, ValueError
            If shapes or types do not fit, a feature is not finite, or features are of a
            file of a part of its records. Also if nobody asked for the `position` of
            a split that is continued: a record appended again would count twice.
        OSError
            If the disk is full or fails.

        Warns
        -----
        PrivacyWarning
            If features of a file that holds users are given without them.
        """
        arrays = as_columns(
            features, labels, groups, dtype=self.dtype, n_features=self.n_features
        )
        if not split or "/" in split or split.startswith("."):
            raise ValueError(f"split must be a plain name, got {split!r}.")
        if split in self._to_ask:
            raise ValueError(
                f"append must go on where split {split!r} was left, got no question "
                "for it: rows would stand twice in the file. Skip as many records as "
                f"position({split!r}).seen says, or begin anew with overwrite=True."
            )
        columns = {name: kind_of_rows(array) for name, array in arrays.items()}
        rows = self._splits.setdefault(split, SplitRows(columns))
        if rows.columns != columns:
            raise ValueError(
                f"every batch of split {split!r} must give rows of {rows.columns}, "
                f"got {columns}."
            )
        if split not in self._with_zeros and warn_of_zeros(split, arrays["features"]):
            self._with_zeros.add(split)
        n_skipped = sum(1 for _ in skipped)
        rows.n_rows += len(arrays["features"])
        rows.n_skipped += n_skipped
        rows.n_new_skipped += n_skipped
        rows.batches.append(arrays)
        self._bytes_in_memory += sum(array.nbytes for array in arrays.values())
        is_late = time.monotonic() - self._last_flush > self._flush_seconds
        if is_late or self._bytes_in_memory > PART_BYTES:
            self.flush()
        else:  # the caller may use the memory again
            rows.batches[-1] = {name: array.copy() for name, array in arrays.items()}

    def flush(self) -> None:
        """Make all rows so far safe against a kill or a loss of power."""
        for split, rows in self._splits.items():
            if rows.batches:
                number = sum(len(rows.parts) for rows in self._splits.values())
                about = {"number": number, "split": split}
                about["arguments"] = self._arguments
                rows.write(self.partial / f"{number:06d}.h5", about)
        self._bytes_in_memory = 0
        self._last_flush = time.monotonic()

    def finish(
        self,
        metadata: Mapping[str, Any] | None = None,
        *,
        class_names: Sequence[str] | None = None,
        split_metadata: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Build the HDF5 file, put it in place, and remove the partial folder.

        Parameters
        ----------
        metadata, split_metadata : mapping
            Attributes, JSON-like, of the file and of each split.
        class_names : sequence of str, optional
            Names of the classes in the order of the labels.

        Raises
        ------
        FeatureFileError
            If rows on disk differ from those that were written.
        OSError
            If the disk is full or fails. The partial folder stays and can be resumed.
        TypeError
            If ``class_names`` are a mapping, a set or a Series.
        ValueError
            If ``metadata`` has a name of the format itself, or there is no row and no
            ``shard``.
        """
        if class_names is not None:
            check_class_names(class_names)
        metadata = dict(metadata or {})
        taken = sorted(set(metadata) & set(RESERVED))
        if taken:
            raise ValueError(f"metadata must not use reserved names, got {taken}.")
        n_rows = sum(rows.n_rows for rows in self._splits.values())
        if not n_rows and "shard" not in metadata:
            raise ValueError(f"{self.path} must get at least one row, got none.")
        self.flush()
        building = self.partial / "assembled.h5"
        with new_hdf5(building, final=self.path) as (file, sink):
            sizes = {"n_features": self.n_features, "feature_dtype": self.dtype}
            write_root(file, {**sizes, **metadata, "n_rows": n_rows}, class_names)
            for split, rows in self._splits.items():
                group = file.create_group(split)
                rows.store(group, sink)
                write_attributes(group, (split_metadata or {}).get(split, {}))
            file.flush()
            sink.check()
            file.attrs["complete"] = True
        open_features(building).close()
        put_in_place(building, self.path)
        self._lock.release()
        shutil.rmtree(self.partial, ignore_errors=True)

    def close(self, *, flush: bool = True) -> None:
        """Stop here; what was written, if anything, can be continued later."""
        if self._lock.is_locked:
            try:
                if flush:
                    self.flush()
            finally:
                self._lock.release()
                if not any(r.parts and r.n_rows for r in self._splits.values()):
                    shutil.rmtree(self.partial, ignore_errors=True)

    def __enter__(self) -> "FeatureWriter":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        # After a failed write another flush would fail as well and hide the cause.
        self.close(flush=not isinstance(error, OSError))
