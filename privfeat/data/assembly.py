"""Build the HDF5 file from its parts and put it in place in one step."""

import errno
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py

from privfeat._files import put_in_place
from privfeat.data.parts import SplitRows, row_bytes
from privfeat.data.reader import open_features
from privfeat.data.schema import COLUMNS, chunk_rows, write_attributes, write_root
from privfeat.data.sink import Sink, new_hdf5


@contextmanager
def naming_full_disk(path: Path) -> Iterator[None]:
    """Say of an error of the disk what could not be written, and what to do."""
    try:
        yield
    except OSError as error:
        raise OSError(
            error.errno or errno.EIO,
            f"{path} could not be written ({error.strerror or error}). Free space on "
            "its disk and run again to continue; earlier features are kept",
        ) from error


def assemble(
    path: Path,
    building: Path,
    splits: Mapping[str, SplitRows],
    *,
    metadata: Mapping[str, Any],
    class_names: Iterable[str] | None,
    split_metadata: Mapping[str, Mapping[str, Any]],
) -> None:
    """Write the file as ``building``, check it, and rename it to ``path``.

    Parameters
    ----------
    path, building : Path
        The final name and the first one, on the same file system.
    splits : mapping of split name to SplitRows
        All rows, none of which is in memory alone.
    metadata, split_metadata : mapping
        Attributes of the file, ``n_features`` and ``feature_dtype`` among them, and of
        each split.
    class_names : iterable of str or None
        Names of the classes.

    Raises
    ------
    FeatureFileError
        If parts were changed on disk.
    OSError
        If the disk is full or fails; nothing is left but the parts.
    """
    with naming_full_disk(path):
        with new_hdf5(building) as (file, sink):
            n_rows = sum(rows.n_rows for rows in splits.values())
            write_root(file, {**metadata, "n_rows": n_rows}, class_names)
            for split, rows in splits.items():
                group = file.create_group(split)
                _write_split(group, rows, sink)
                write_attributes(group, split_metadata.get(split, {}))
            file.flush()
            sink.check()
            file.attrs["complete"] = True
        open_features(building).close()
        put_in_place(building, path)


def _write_split(group: h5py.Group, rows: SplitRows, sink: Sink) -> None:
    for name in (name for name in COLUMNS if name in rows.columns):
        column = rows.columns[name]
        options: dict[str, Any] = {}
        if name == "features":
            n_together = chunk_rows(rows.n_rows, row_bytes(column))
            options["chunks"] = (n_together, *column.shape[1:])
            options["maxshape"] = (None, *column.shape[1:])
        shape = (rows.n_rows, *column.shape[1:])
        target = group.create_dataset(name, shape, column.dtype, **options)
        start = crc32 = 0
        for block in rows.blocks(name):
            target[start : start + len(block)] = block
            start += len(block)
            crc32 = zlib.crc32(block.data, crc32)
            sink.check()
        group.attrs[f"{name}_crc32"] = crc32
    group.attrs["n_rows"] = rows.n_rows
    group.attrs["n_skipped"] = rows.n_skipped
