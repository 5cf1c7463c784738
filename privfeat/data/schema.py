"""The layout of a feature file, format version 2, and the check of an open file.

::

    /                            attributes: format, format_version, complete,
                                 n_features, feature_dtype, n_rows, and how the
                                 features were made (model, weights, input, data)
    /class_names                 (n_classes,) UTF-8 strings; absent if unknown
    /<split>                     attributes: n_rows, n_skipped, file_list_sha256
    /<split>/features            (n, d) float16 or float32, chunked by rows, no filter
    /<split>/labels              (n,) int64 class indices, or (n, m) uint8 indicators
    /<split>/groups              (n,) int64, optional

A file may be joined from shards, feature files by themselves. Then features, labels and
groups are virtual datasets, the attribute ``shards`` lists path, fingerprint and rows
of each shard, and checksums are those of the shards. Version 1 had no shards; it is
still read.

Files of earlier releases may hold ``/<split>/skipped``, names of images that gave no
row: they are not read, and not copied. ``docs/what-leaves.md`` says of each part
whether it may be published; nothing but `ORIGIN` may.

Attributes that are lists or dictionaries are stored as JSON text under their own name
with the suffix ``_json``. ``complete`` is written last. Any change of this layout
raises ``FORMAT_VERSION``.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

FORMAT = "privfeat-features"
FORMAT_VERSION = 2
READABLE_VERSIONS = (1, 2)
FEATURE_DTYPES = ("float16", "float32")
COLUMNS = ("features", "labels", "groups")
CHUNK_BYTES = 256 * 1024
# How features were made: no record has a part in it, so that a report may show it.
ORIGIN = tuple(
    "crop dataset feature_dtype input_size interpolation layers max_length mean model "
    "model_kwargs model_name model_tag n_features pairs pooling precision resize std "
    "versions views weights_license weights_sha256 weights_source".split()
)
# Attribute of a split of which near-duplicates were left out: of which files, by their
# fingerprints.
WITHOUT_DUPLICATES = "without_duplicates_of"
RESERVED = tuple(
    "format format_version complete n_features feature_dtype n_rows shards".split()
)


class FeatureFileError(ValueError):
    """A feature file is missing, incomplete, damaged, of another kind, or in use."""


def require_free(path: Path, *, overwrite: bool) -> None:
    """Raise `FeatureFileError` if the file exists and must not be replaced."""
    if path.exists() and not overwrite:
        raise FeatureFileError(
            f"{path} must not exist yet, but does. Choose another name, or pass "
            "overwrite to replace it."
        )


def shown(name: str, values: Mapping[str, Any]) -> str:
    """Return a value for a message, unless it may reveal records: then "another"."""
    public = name in (*ORIGIN, "class_names", "data", "dtype", "limit", "splits")
    public |= name == "shard count" or "/" in name  # the type of a column
    return repr(values.get(name)) if public or name not in values else "another"


@contextmanager
def refused_if_damaged(
    path: str | Path,
    must: str = "be readable as a feature file",
    remedy: str = "Extract or copy it again.",
) -> Iterator[None]:
    """Turn what HDF5 and JSON raise on damaged bytes into `FeatureFileError`."""
    try:
        yield
    except FeatureFileError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        OSError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raise FeatureFileError(
            f"{path} must {must}, but is gone or damaged ({type(error).__name__}). "
            f"{remedy}"
        ) from None  # HDF5's own words hold sizes, and places of rows


def open_hdf5(path: str, must: str, remedy: str) -> h5py.File:
    """Return an open file, or raise `FeatureFileError` in these words.

    None of HDF5's: they hold the size of a file, and with it the number of rows.
    """
    try:
        return h5py.File(path, "r")
    except OSError as error:
        why = f" ({os.strerror(error.errno)})" if error.errno else ""
    raise FeatureFileError(f"{path} {must}{why}. {remedy}")


def chunk_rows(n_rows: int, row_bytes: int) -> int:
    """Rows of one chunk: about ``CHUNK_BYTES``, at least one, at most ``n_rows``."""
    return max(1, min(n_rows, CHUNK_BYTES // max(row_bytes, 1)))


def write_attributes(target: h5py.HLObject, values: Mapping[str, Any]) -> None:
    """Store values; lists, dictionaries and ``None`` become JSON."""
    for name, value in values.items():
        if isinstance(value, str | bool | int | float):
            target.attrs[name] = value
        else:
            target.attrs[f"{name}_json"] = json.dumps(value, sort_keys=True)


def write_root(
    file: h5py.File, attributes: Mapping[str, Any], class_names: Sequence[str] | None
) -> None:
    """Begin a file that is not complete yet."""
    file.attrs["format"] = FORMAT
    file.attrs["format_version"] = FORMAT_VERSION
    file.attrs["complete"] = False
    write_attributes(file, attributes)
    if class_names is not None:
        names, kind = list(class_names), h5py.string_dtype()
        file.create_dataset("class_names", data=names, dtype=kind)


def read_attributes(source: h5py.HLObject) -> dict[str, Any]:
    """Return the attributes written by `write_attributes` as Python values."""
    values: dict[str, Any] = {}
    for name, value in source.attrs.items():
        if isinstance(value, np.generic):
            value = value.item()
        if name.endswith("_json") and isinstance(value, str):
            name, value = name.removesuffix("_json"), json.loads(value)
        values[name] = value
    return values


def read_all_attributes(file: h5py.File) -> dict[str, dict[str, Any]]:
    """Return the attributes of a file, under "", and of its splits, by their names."""
    splits = {n: item for n, item in file.items() if isinstance(item, h5py.Group)}
    return {n: read_attributes(item) for n, item in {"": file, **splits}.items()}


def check_root(file: h5py.File, path: str) -> None:
    """Raise `FeatureFileError` unless ``file`` is a complete file of this version."""
    if file.attrs.get("format") != FORMAT:
        raise FeatureFileError(
            f"{path} must be a feature file of privfeat-extract, but its 'format' "
            f"attribute is {file.attrs.get('format')!r}, not {FORMAT!r}."
        )
    version = file.attrs.get("format_version")
    if version not in READABLE_VERSIONS:
        raise FeatureFileError(
            f"{path} must have a format version in {READABLE_VERSIONS}, got {version}. "
            "Install the privfeat release that wrote it, or extract again."
        )
    if not bool(file.attrs.get("complete", False)):
        raise FeatureFileError(
            f"{path} must be complete, but its completion mark is missing. "
            "Run the extraction again."
        )


def read_columns(
    group: h5py.Group, path: str, n_features: int, dtype: str
) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return shape and type of each array of a split.

    FeatureFileError unless they agree with each other and with the root.
    """
    where = f"{path}: split {group.name.strip('/')!r}"
    features, labels = group.get("features"), group.get("labels")
    if not isinstance(features, h5py.Dataset) or not isinstance(labels, h5py.Dataset):
        raise FeatureFileError(f"{where} must hold 'features' and 'labels'.")
    if features.ndim != 2 or features.shape[1] != n_features:
        raise FeatureFileError(
            f"{where}: features must have shape (n, {n_features}), got "
            f"(n, {', '.join(map(str, features.shape[1:]))})."
        )
    if str(features.dtype) != dtype or dtype not in FEATURE_DTYPES:
        raise FeatureFileError(
            f"{where}: features must be of type {' or '.join(FEATURE_DTYPES)} as "
            f"stated by 'feature_dtype' ({dtype}), got {features.dtype}."
        )
    integer_labels = labels.ndim == 1 and labels.dtype == np.int64
    if not integer_labels and not (labels.ndim == 2 and labels.dtype == np.uint8):
        raise FeatureFileError(
            f"{where}: labels must be (n,) int64 or (n, m) uint8, got {labels.ndim} "
            f"dimensions of {labels.dtype}."
        )
    n_rows = group.attrs.get("n_rows")
    columns = {name: group[name] for name in COLUMNS if name in group}
    others = [name for name, column in columns.items() if len(column) != n_rows]
    if others:
        raise FeatureFileError(
            f"{where} must have n_rows rows in every array, got another number in "
            f"{', '.join(others)}."
        )
    return {name: (array.shape, str(array.dtype)) for name, array in columns.items()}
