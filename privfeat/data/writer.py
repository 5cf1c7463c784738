"""Write a feature file in pieces, safe against a kill at any moment."""

import os
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfeat.data.assembly import assemble
from privfeat.data.columns import as_columns, warn_of_zeros
from privfeat.data.journal import Journal, Position, RawColumn, partial_folder
from privfeat.data.schema import FEATURE_DTYPES, RESERVED, FeatureFileError


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
        Everything that determines the features. A partial folder is continued only
        with equal arguments.
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
    A process that is killed at any moment leaves a partial folder from which the next
    one continues at the last flush, and never a file that is short: see ``journal.py``.
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
        self.path = Path(path)
        self.partial = partial_folder(path)
        self.n_features, self.dtype = int(n_features), dtype
        self.resumed = False
        self._flush_seconds = flush_seconds
        self._last_flush = time.monotonic()
        self._columns: dict[str, dict[str, RawColumn]] = {}
        self._seen: dict[str, int] = {}
        self._n_skipped: dict[str, int] = {}
        self._dirty: set[str] = set()
        self._zeros: set[str] = set()
        if self.path.exists() and not overwrite:
            raise FeatureFileError(
                f"{self.path} must not exist yet, but does. Choose another name, or "
                "pass overwrite to replace it."
            )
        self._journal = Journal(self.partial)
        header = {
            "arguments": dict(arguments or {}),
            "n_features": self.n_features,
            "dtype": dtype,
        }
        self.partial.mkdir(parents=True, exist_ok=True)
        try:
            self._journal.open()
            if not overwrite and self._journal.read():
                self._journal.require(header)
                self._resume()
            else:
                self._journal.start(header)
        except BaseException:
            self._release()
            raise

    def position(self, split: str) -> Position:
        """Return how far ``split`` has been written, (0, 0) if not begun."""
        columns = self._columns.get(split, {})
        n_rows = columns["features"].n_rows if columns else 0
        return Position(self._seen.get(split, 0), n_rows)

    def n_skipped(self, split: str) -> int:
        """Return how many records of ``split`` gave no row."""
        known: int = self._journal.progress.get(split, {}).get("n_skipped", 0)
        return known + self._n_skipped.get(split, 0)

    def labels(self, split: str) -> NDArray[Any]:
        """Return the labels of ``split`` written so far."""
        column = self._columns[split]["labels"]
        blocks = list(column.blocks(column.n_rows))
        return np.concatenate(blocks) if blocks else np.empty(0, column.dtype)

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
            One entry per row.
        groups : array-like of shape (m,) int, optional
            Given for all rows of a split or for none.
        skipped : iterable of str
            Records that were met among these and gave no row: counted, not kept.

        Raises
        ------
        TypeError, ValueError
            If shapes or types do not fit, or a feature is not finite.
        OSError
            If the disk is full or fails.
        """
        arrays = as_columns(
            features, labels, groups, dtype=self.dtype, n_features=self.n_features
        )
        if split not in self._columns:
            if not split or "/" in split or split.startswith("."):
                raise ValueError(f"split must be a plain name, got {split!r}.")
            self._columns[split] = {
                name: RawColumn(
                    self._raw_path(split, name),
                    str(array.dtype),
                    array.shape[1] if array.ndim == 2 else None,
                )
                for name, array in arrays.items()
            }
        columns = self._columns[split]
        if columns.keys() != arrays.keys():
            raise ValueError(
                f"every batch of split {split!r} must give {sorted(columns)}, "
                f"got {sorted(arrays)}."
            )
        if split not in self._zeros and warn_of_zeros(split, arrays["features"]):
            self._zeros.add(split)
        for name, array in arrays.items():
            columns[name].append(array)
        n_skipped = sum(1 for _ in skipped)
        n_seen = len(arrays["features"]) + n_skipped
        self._seen[split] = self._seen.get(split, 0) + n_seen
        self._n_skipped[split] = self._n_skipped.get(split, 0) + n_skipped
        self._dirty.add(split)
        if time.monotonic() - self._last_flush > self._flush_seconds:
            self.flush()

    def flush(self) -> None:
        """Make all rows so far safe against a kill or a loss of power."""
        for split, columns in self._columns.items():
            if split not in self._dirty:
                continue
            for column in columns.values():
                column.sync()
            self._journal.record(
                {
                    "split": split,
                    "seen": self._seen[split],
                    "n_rows": columns["features"].n_rows,
                    "n_skipped": self._n_skipped.pop(split, 0),
                    "columns": {
                        name: [str(c.dtype), c.width, c.checksum]
                        for name, c in columns.items()
                    },
                }
            )
        self._dirty.clear()
        self._last_flush = time.monotonic()

    def finish(
        self,
        metadata: Mapping[str, Any] | None = None,
        *,
        class_names: Iterable[str] | None = None,
        split_metadata: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Build the HDF5 file, put it in place, and remove the partial folder.

        Parameters
        ----------
        metadata : mapping of str to JSON-like value
            Attributes of the file; names of the format itself are refused.
        class_names : iterable of str, optional
            Names of the classes in the order of the labels.
        split_metadata : mapping of split name to mapping
            Attributes of each split.

        Raises
        ------
        FeatureFileError
            If rows on disk differ from those that were written.
        OSError
            If the disk is full or fails. The partial folder stays and can be resumed.
        ValueError
            If ``metadata`` uses a reserved name, or there is no row and no ``shard``.
        """
        taken = sorted(set(metadata or {}) & set(RESERVED))
        if taken:
            raise ValueError(f"metadata must not use reserved names, got {taken}.")
        rows = sum(self.position(split).n_rows for split in self._columns)
        if not rows and "shard" not in (metadata or {}):
            raise ValueError(f"{self.path} must get at least one row, got none.")
        self.flush()
        assemble(
            self.path,
            self.partial,
            self._columns,
            {split: self.n_skipped(split) for split in self._columns},
            root={
                "n_features": self.n_features,
                "feature_dtype": self.dtype,
                **(metadata or {}),
            },
            class_names=None if class_names is None else list(class_names),
            split_metadata=split_metadata or {},
        )
        self.close(flush=False)
        shutil.rmtree(self.partial, ignore_errors=True)

    def close(self, *, flush: bool = True) -> None:
        """Stop here; what was written, if anything, can be continued later."""
        try:
            if flush:
                self.flush()
        finally:
            self._release()
            if not any(c["features"].n_rows for c in self._columns.values()):
                shutil.rmtree(self.partial, ignore_errors=True)

    def __enter__(self) -> "FeatureWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # After a failed write another flush would fail as well and hide the cause.
        self.close(flush=not isinstance(error, OSError))

    def _raw_path(self, split: str, column: str) -> Path:
        return self.partial / f"{split}.{column}.col"

    def _release(self) -> None:
        for columns in self._columns.values():
            for column in columns.values():
                column.close()
        self._journal.close()
        self._dirty.clear()

    def _resume(self) -> None:
        """Take up the columns that the journal vouches for."""
        for split, state in self._journal.progress.items():
            columns = self._columns[split] = {}
            for name, (dtype, width, checksum) in state["columns"].items():
                columns[name] = RawColumn(
                    self._raw_path(split, name), dtype, width, state["n_rows"], checksum
                )
            self._seen[split] = state["seen"]
        self.resumed = bool(self._columns)
