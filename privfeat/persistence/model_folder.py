"""The files of a saved model: a JSON document and NumPy arrays, with checksums."""

import hashlib
import io
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from privfeat._files import write_atomically

PathLike = str | os.PathLike[str]
Arrays = dict[str, np.ndarray]

FORMAT = "privfeat-model"
FORMAT_VERSION = 1
DOCUMENT = "model.json"
EVALUATION = "evaluation.json"  # of the model, which `metrics/files` writes
_ARRAYS_NAME = re.compile(r"arrays-[0-9a-f]{16}\.npz")
_FIELDS = {
    "estimator": str,
    "params": dict,
    "class_names": list | None,
    "fitted": dict,
    "privacy": dict,
    "arrays": dict,
}
# RuntimeError: an archive with a password, or packed in another way
_UNREADABLE = (
    EOFError,
    KeyError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
)
# Written where it is known, since models of earlier releases lack it.
_OPTIONAL = {"features": dict, "table": dict, "steps": list}
_OTHER_FIELDS = {"format", "format_version", "privfeat_version", "sha256"}


class ModelFileError(ValueError):
    """A folder is not a privfeat model that this version can read."""


def write_model(
    folder: Path,
    document: dict[str, Any],
    arrays: Arrays,
    objects: list[str],
) -> None:
    """Write a model into a folder, in the place of one that is there.

    ``document`` has all fields but those of the format and of the arrays; ``objects``
    are the names of arrays that were of objects, and are again when they are read.
    """
    content = npz(arrays)
    sha256 = hashlib.sha256(content).hexdigest()
    name = f"arrays-{sha256[:16]}.npz"
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        **document,
        "arrays": {"file": name, "sha256": sha256, "objects": objects},
    }
    document["sha256"] = digest(document)
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"

    # The document names its arrays by their content, so replacing the document is
    # the one step that changes what a reader sees.
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / name, content, like=folder / DOCUMENT)
    write_atomically(folder / DOCUMENT, text.encode())
    for old in folder.iterdir():
        if _ARRAYS_NAME.fullmatch(old.name) and old.name != name:
            old.unlink()


def damaged(path: PathLike, why: str) -> ModelFileError:
    """Return the error for a model whose files have changed."""
    return ModelFileError(f"{str(path)!r} is damaged: {why}.")


def read_document(path: PathLike) -> dict[str, Any]:
    """Return the checked ``model.json`` of a folder."""
    try:
        content = (Path(path) / DOCUMENT).read_bytes()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise ModelFileError(
            f"{str(path)!r} is not a privfeat model: it has no {DOCUMENT}."
        ) from error
    document = checked_json(path, DOCUMENT, content, FORMAT)
    if not all(isinstance(document.get(key, 0), t) for key, t in _FIELDS.items()):
        raise damaged(path, f"{DOCUMENT} lacks a field")
    if not all(isinstance(document.get(key, t()), t) for key, t in _OPTIONAL.items()):
        raise damaged(path, f"{DOCUMENT} has a field of another type")
    if not document.keys() <= _FIELDS.keys() | _OPTIONAL.keys() | _OTHER_FIELDS:
        raise damaged(path, f"{DOCUMENT} has a field too many")
    return document


def checked_json(
    path: PathLike, name: str, content: bytes, expected: str
) -> dict[str, Any]:
    """Return the document of a file that has this format, version and checksum."""
    try:
        document: dict[str, Any] = json.loads(content)
        checksum = digest(document) if isinstance(document, dict) else None
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"{name} is not JSON, or nested too deep") from error
    if checksum is None or document.get("format") != expected:
        raise damaged(path, f"{name} has another format, or is of another program")
    version = document.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise ModelFileError(
            f"{str(path)!r} has format version {version}, this privfeat reads "
            f"{FORMAT_VERSION}. Upgrade privfeat."
        )
    if version != FORMAT_VERSION or document.get("sha256") != checksum:
        raise damaged(path, f"{name} does not match its checksum")
    return document


def read_arrays(path: PathLike, entry: dict[str, Any]) -> Arrays:
    """Return the checked arrays that ``entry``, of the document, names."""
    name = str(entry.get("file"))
    if not _ARRAYS_NAME.fullmatch(name):
        raise damaged(path, f"{DOCUMENT} names no file of arrays")
    try:
        content = (Path(path) / name).read_bytes()
    except FileNotFoundError as error:
        raise damaged(path, f"{name} is missing") from error
    if hashlib.sha256(content).hexdigest() != entry.get("sha256"):
        raise damaged(path, f"{name} does not match its checksum")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        objects = entry["objects"]
        texts = {key for key, array in arrays.items() if array.dtype.kind == "U"}
        if not isinstance(objects, list) or not set(objects) <= texts:
            raise ValueError("objects must name arrays of text.")
        return arrays | {key: arrays[key].astype(object) for key in objects}
    except _UNREADABLE as error:
        raise damaged(path, f"{name} does not hold arrays") from error


def npz(arrays: Arrays) -> bytes:
    """Return arrays as the content of a file, without pickle."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def digest(document: dict[str, Any]) -> str:
    """Return the checksum of all fields but the checksum's own."""
    rest = {key: value for key, value in document.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
