"""Join feature files into one whose rows stay where they are."""

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from privfeat._files import write_atomically
from privfeat._warnings import warn
from privfeat.data.reader import FeatureFile, FeatureSplit
from privfeat.data.schema import (
    COLUMNS,
    RESERVED,
    WITHOUT_DUPLICATES,
    FeatureFileError,
    require_free,
    shown,
    write_attributes,
    write_root,
)
from privfeat.data.shards import SHARDS, Shard, fingerprint

OF_ONE_SHARD = (*RESERVED, "shard", "n_skipped", *(f"{c}_crc32" for c in COLUMNS))


def join_features(
    path: str | os.PathLike[str],
    shards: Sequence[str | os.PathLike[str]],
    *,
    split_metadata: Mapping[str, Mapping[str, Any]] | None = None,
    overwrite: bool = False,
) -> None:
    """Join feature files, one after the other, into one file.

    Parameters
    ----------
    path : str or path-like
        The file to write. It holds virtual datasets and the relative paths of the
        shards, so all can be moved together.
    shards : sequence of str or path-like
        Complete feature files, in the order of their rows.
    split_metadata : mapping of split name to mapping
        Attributes of each split, beside those that all shards share.
    overwrite : bool
        Replace an existing file.

    Raises
    ------
    FeatureFileError
        If the file exists and ``overwrite`` is False; a shard is missing, damaged or
        itself joined; the shards differ in splits, columns, types, class names or the
        arguments of their extraction, or are not all shards of it in their order; two
        are the same; or a split has no row.
    OSError
        If the disk is full or fails.

    Notes
    -----
    The file keeps a fingerprint of each shard: `open_features` refuses it when a shard
    was replaced or is gone. It appears whole or not at all, so several processes may
    join the same shards at once. Where a shard is missing, programs that read HDF5
    directly find NaN and the largest integer, not zeros.

    Users are joined by their numbers: one user must have the same in all shards, as in
    those of one extraction. Nothing shows it of other files, so a `PrivacyWarning` says
    so.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from privfeat.data import join_features, open_features, write_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [os.path.join(folder, name) for name in ("a.h5", "b.h5", "ab.h5")]
    ...     write_features(paths[0], {"train": (np.eye(2), [0, 1])})
    ...     write_features(paths[1], {"train": (np.ones((1, 2)), [1])})
    ...     join_features(paths[2], paths[:2])
    ...     train = open_features(paths[2])["train"]
    ...     print(train.X[:].tolist(), train.y)
    [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]] [0 1 1]
    """
    path = Path(path)
    require_free(path, overwrite=overwrite)
    files = [FeatureFile(shard) for shard in shards]
    _check_order_and_identity(files)
    known = [
        Shard(
            Path(os.path.relpath(file.path, path.absolute().parent)).as_posix(),
            fingerprint(file.metadata, {s: rows.metadata for s, rows in file.items()}),
            {split: len(rows) for split, rows in file.items()},
        )
        for file in files
    ]
    _check_distinct(known)
    first = files[0]
    if any("groups" in split.columns for split in first.values()):
        _warn_of_numbers(files)
    attributes = {
        **_shared([file.metadata for file in files]),
        "n_features": first.n_features,
        "feature_dtype": first.metadata["feature_dtype"],
        "n_rows": sum(file.metadata["n_rows"] for file in files),
        SHARDS: [shard._asdict() for shard in known],
    }
    limits = [file.metadata.get("limit") for file in files]
    if limited := [limit for limit in limits if limit is not None]:
        attributes["limit"] = limited[0]  # the first records of one alone
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as joined:
        write_root(joined, attributes, first.class_names)
        for split in first:
            group = joined.create_group(split)
            _write_split(group, [file[split] for file in files], known)
            write_attributes(group, (split_metadata or {}).get(split, {}))
        joined.attrs["complete"] = True
    write_atomically(path, buffer.getvalue())


def _check_order_and_identity(files: Sequence[FeatureFile]) -> None:
    """Raise `FeatureFileError` unless the files belong together, in this order."""
    if not files:
        raise FeatureFileError("shards must be at least one file, got none.")
    first = files[0]
    for number, file in enumerate(files, 1):
        if file.shards:
            raise FeatureFileError(
                f"{file.path} must be a plain feature file, but is itself joined. Join "
                "its shards."
            )
        then, now = _identity(first), _identity(file)
        for name in sorted({*then, *now}):
            if then.get(name) != now.get(name):
                raise FeatureFileError(
                    f"{file.path} must agree with {first.path}, but {name} is "
                    f"{shown(name, now)} and there {shown(name, then)}. Extract it "
                    "with the same arguments."
                )
        shard = file.metadata.get("shard") or {"number": number, "count": len(files)}
        if (shard["number"], shard["count"]) != (number, len(files)):
            raise FeatureFileError(
                f"{file.path} must be shard {number} of {len(files)}, but is shard "
                f"{shard['number']} of {shard['count']}. Join all shards in order."
            )
    for split in first:
        if not any(len(file[split]) for file in files):
            raise FeatureFileError(
                f"split {split!r} must have a row in some shard, but has none. Leave "
                "that split out."
            )


def _check_distinct(shards: Sequence[Shard]) -> None:
    """Raise `FeatureFileError` if two shards have one content."""
    found: dict[str, str] = {}
    for shard in shards:
        if shard.sha256 in found:
            raise FeatureFileError(
                f"shards must differ, but {shard.file} is {found[shard.sha256]} again: "
                "every record would count twice. Leave one out."
            )
        found[shard.sha256] = shard.file


def _warn_of_numbers(files: Sequence[FeatureFile]) -> None:
    """Warn unless one extraction has given the users their numbers."""
    if len(files) > 1 and not all("shard" in file.metadata for file in files):
        warn(
            "users are joined by their numbers: each must have the same number in all "
            "shards, and no other user. Number them over all shards, not in each, or "
            "the guarantee of a user is that of a part of the rows."
        )


def _identity(file: FeatureFile) -> dict[str, Any]:
    """Return what the shards of one file have in common."""
    shard = file.metadata.get("shard") or {}
    identity = {
        **file.metadata.get("arguments", {}),
        "n_features": file.n_features,
        "feature_dtype": file.metadata["feature_dtype"],
        "class_names": file.class_names,
        "splits": list(file),
        **{f"shard {name}": shard[name] for name in shard if name != "number"},
    }
    for name, split in file.items():
        for column, (shape, dtype) in split.columns.items():
            identity[f"{name}/{column}"] = f"{dtype}{shape[1:]}"
    return identity


def _shared(attributes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the attributes that are the same everywhere."""
    return {
        name: value
        for name, value in attributes[0].items()
        if name not in OF_ONE_SHARD
        and all(name in other and other[name] == value for other in attributes)
    }


def _write_split(
    group: h5py.Group, splits: Sequence[FeatureSplit], shards: Sequence[Shard]
) -> None:
    """Write a split whose virtual columns follow one another from shard to shard."""
    starts = np.cumsum([0, *map(len, splits)])
    for name, ((_, *row_shape), dtype) in splits[0].columns.items():
        layout = h5py.VirtualLayout((starts[-1], *row_shape), dtype)
        for shard, split, start in zip(shards, splits, starts, strict=False):
            if len(split):
                shape, _ = split.columns[name]
                layout[start : start + len(split)] = h5py.VirtualSource(
                    shard.file, f"{split.name}/{name}", shape=shape, dtype=dtype
                )
        real = np.issubdtype(layout.dtype, np.floating)
        missing = np.nan if real else np.iinfo(layout.dtype).max
        group.create_virtual_dataset(name, layout, fillvalue=missing)
    write_attributes(group, _shared([split.metadata for split in splits]))
    if chosen := sorted({one for split in splits for one in split.X.chosen_by}):
        write_attributes(group, {WITHOUT_DUPLICATES: chosen})
    n_skipped = sum(split.metadata.get("n_skipped", 0) for split in splits)
    group.attrs["n_rows"], group.attrs["n_skipped"] = starts[-1], n_skipped
