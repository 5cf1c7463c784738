"""Build the HDF5 file from raw columns and put it in place in one step."""

import errno
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py

from privfeat.data.journal import RawColumn
from privfeat.data.reader import open_features
from privfeat.data.schema import (
    COLUMNS,
    FORMAT,
    FORMAT_VERSION,
    FeatureFileError,
    chunk_rows,
    write_attributes,
)
from privfeat.data.sink import Sink

ASSEMBLED = "assembled.h5"


def assemble(
    path: Path,
    partial: Path,
    columns: Mapping[str, Mapping[str, RawColumn]],
    n_skipped: Mapping[str, int],
    *,
    root: Mapping[str, Any],
    class_names: list[str] | None,
    split_metadata: Mapping[str, Mapping[str, Any]],
) -> None:
    """Write ``partial/assembled.h5``, check it, and rename it to ``path``.

    Parameters
    ----------
    path, partial : Path
        The final file and the folder of raw columns, on the same file system.
    columns : mapping of split name to mapping of column name to RawColumn
        What to store.
    n_skipped : mapping of split name to int
        How many records gave no row.
    root, split_metadata : mapping
        Attributes of the file and of each split.
    class_names : list of str or None
        Names of the classes.

    Raises
    ------
    FeatureFileError
        If the raw rows changed on disk.
    OSError
        If the disk is full or fails; nothing is left but the raw columns.
    """
    building = partial / ASSEMBLED
    try:
        with Sink(building) as sink, h5py.File(sink, "w") as file:
            file.attrs["format"] = FORMAT
            file.attrs["format_version"] = FORMAT_VERSION
            file.attrs["complete"] = False
            write_attributes(file, root)
            file.attrs["n_rows"] = sum(c["features"].n_rows for c in columns.values())
            if class_names is not None:
                file.create_dataset(
                    "class_names", data=class_names, dtype=h5py.string_dtype()
                )
            for split, raw in columns.items():
                group = file.create_group(split)
                metadata = split_metadata.get(split, {})
                _write_split(group, raw, n_skipped[split], metadata, sink)
            file.flush()
            sink.check()
            file.attrs["complete"] = True
        with open_features(building):
            pass
    except OSError as error:
        building.unlink(missing_ok=True)
        raise OSError(
            error.errno or errno.EIO,
            f"{path} could not be written ({error.strerror or error}). Free space on "
            "its disk and run the same command again; no feature is lost",
        ) from error
    os.replace(building, path)
    _sync_folder(path.parent)


def _write_split(
    group: h5py.Group,
    columns: Mapping[str, RawColumn],
    n_skipped: int,
    metadata: Mapping[str, Any],
    sink: Sink,
) -> None:
    for name in (name for name in COLUMNS if name in columns):
        column = columns[name]
        n_rows, width = column.n_rows, column.width
        shape = (n_rows,) if width is None else (n_rows, width)
        options: dict[str, Any] = {}
        if name == "features":
            rows = chunk_rows(n_rows, column.row_bytes)
            options["chunks"] = (rows, width)
            options["maxshape"] = (None, width)
        target = group.create_dataset(name, shape, column.dtype, **options)
        start, checksum = 0, 0
        for block in column.blocks(n_rows):
            target[start : start + len(block)] = block
            checksum = zlib.crc32(block.tobytes(), checksum)
            start += len(block)
            sink.check()
        if start != n_rows or checksum != column.checksum:
            raise FeatureFileError(
                f"{column.path} must hold the rows that were written, but was changed. "
                "Start again with overwrite."
            )
        group.attrs[f"{name}_crc32"] = checksum
    group.attrs["n_rows"] = columns["features"].n_rows
    group.attrs["n_skipped"] = n_skipped
    write_attributes(group, metadata)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where folders can be synchronized."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
