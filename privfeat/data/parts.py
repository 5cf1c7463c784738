"""Rows of an unfinished feature file, in small files that are never changed."""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from privfeat._files import put_in_place
from privfeat.data.schema import DAMAGE, FeatureFileError
from privfeat.data.sink import new_hdf5

PART_BYTES = 8 << 20
BLOCK_BYTES = 4 << 20


@dataclass
class Column:
    """One array of a split: type and shape of a row, and the CRC-32 of all rows."""

    dtype: str
    shape: tuple[int, ...]
    crc32: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return np.dtype((self.dtype, self.shape)).itemsize


@dataclass
class SplitParts:
    """The rows of one split: in parts on disk, the last ones in memory.

    Attributes
    ----------
    folder : Path
        The partial folder.
    name : str
        Name of the split.
    columns : dict of str to Column
        What each row has.
    n_rows, n_skipped : int
        Rows, those in memory included, and records that gave none.
    n_parts : int
        Parts on disk.
    """

    folder: Path
    name: str
    columns: dict[str, Column]
    n_rows: int = 0
    n_skipped: int = 0
    n_parts: int = 0
    _n_in_memory: int = 0
    _in_memory: list[dict[str, NDArray[Any]]] = field(default_factory=list)

    def append(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy rows of the right types to the end."""
        for name, array in arrays.items():
            column = self.columns[name]
            if array.dtype != column.dtype or array.shape[1:] != column.shape:
                raise ValueError(
                    f"{name} of split {self.name!r} must be {column.dtype} of width "
                    f"{column.shape[0] if column.shape else None}, got {array.dtype} "
                    "of another shape."
                )
        step = max(1, PART_BYTES // self.columns["features"].row_bytes)
        for start in range(0, len(arrays["features"]), step):
            rows = {
                n: array[start : start + step].copy() for n, array in arrays.items()
            }
            for name, column in self.columns.items():
                column.crc32 = zlib.crc32(rows[name].data, column.crc32)
            self._in_memory.append(rows)
            self._n_in_memory += len(rows["features"])
            self.n_rows += len(rows["features"])
            if self._n_in_memory >= step:
                self.write()

    def write(self) -> None:
        """Write the rows in memory, if any, as a part that no manifest counts yet."""
        if not self._in_memory:
            return
        path = self.path(self.n_parts)
        temporary = path.with_name(f".{path.name}.tmp")
        with new_hdf5(temporary) as (file, _):
            for name in self.columns:
                file[name] = np.concatenate([rows[name] for rows in self._in_memory])
        put_in_place(temporary, path)
        self.n_parts += 1
        self._n_in_memory = 0
        self._in_memory.clear()

    def path(self, number: int) -> Path:
        """Return the path of a part."""
        return self.folder / f"{self.name}.{number:06d}.h5"

    def blocks(self, name: str) -> Iterator[NDArray[Any]]:
        """Yield the rows of a column on disk, in blocks of one size whatever the parts.

        Raises
        ------
        FeatureFileError
            At the latest after the last block, if they are not what was written.
        """
        column = self.columns[name]
        step = max(1, BLOCK_BYTES // max(1, column.row_bytes))
        rest = np.empty((0, *column.shape), column.dtype)
        n_rows = crc32 = 0
        try:
            for number in range(self.n_parts):
                with h5py.File(self.path(number), "r") as part:
                    rows = part[name][()]
                n_rows, crc32 = n_rows + len(rows), zlib.crc32(rows.data, crc32)
                rest = np.concatenate([rest, rows]) if len(rest) else rows
                while len(rest) >= step:
                    yield rest[:step]
                    rest = rest[step:]
            if len(rest):
                yield rest
            if (n_rows, crc32) != (self.n_rows, column.crc32):
                raise ValueError("other rows than those that were written")
        except DAMAGE:
            raise FeatureFileError(
                f"{self.folder} must hold the rows that its manifest counts, but split "
                f"{self.name!r} was changed or lost rows. Start again with overwrite."
            ) from None

    def check(self) -> None:
        """Raise `FeatureFileError` unless all rows are as they were written."""
        for name in self.columns:
            for _ in self.blocks(name):
                pass
