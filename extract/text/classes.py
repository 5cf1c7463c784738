"""The classes of texts: their labels in the table, and descriptions for people."""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privfeat.data.tables.files import read_schema, table_parts

from ..errors import ExtractError

FORMATS = (".toml", ".json", ".csv")
_COLUMNS = ("label", "description")


def read_classes(given: Sequence[str]) -> dict[str, str]:
    """Return the description of each class, by its label, in the order given.

    ``given`` is labels; or one file: TOML of lines ``label = "description"``, JSON of
    an object of the same or a list of labels, CSV with the columns ``label`` and
    ``description``. A label without a description is its own, with spaces for
    underscores.

    ExtractError if a file cannot be read, a label or description is no text, a label
    stands twice, or in two ways that are read alike, or there are fewer than two.
    """
    path = Path(given[0])
    if len(given) == 1 and path.suffix.lower() in FORMATS:
        pairs = _read(path)
    else:
        pairs = [(label, None) for label in given]
    labels = [_text(label).strip() for label, _ in pairs]
    if len(labels) < 2 or not all(labels):
        raise ExtractError(
            f"--class-names must be at least 2 labels, none of them blank, got {labels}"
            f". Pass names, or a file that ends in {', '.join(FORMATS)}."
        )
    read = [_as_read(label) for label in labels]
    if len({*read}) < len(labels):
        twice = next(a for a, b in zip(labels, read, strict=True) if read.count(b) > 1)
        raise ExtractError(
            f"--class-names must be different, got {twice!r} twice, or written in two "
            "ways, as 1 and 01: readers of tables make one of them."
        )
    said = [_text(label if told is None else told).strip() for label, told in pairs]
    return {
        label: (label.replace("_", " ") if told in ("", label) else told)
        for label, told in zip(labels, said, strict=True)
    }


def _read(path: Path) -> list[tuple[Any, Any]]:
    """Return what a file says of each class."""
    if path.suffix.lower() == ".csv":
        return _read_csv(path)
    try:
        text = path.read_text(encoding="utf-8")
        toml = path.suffix.lower() == ".toml"
        found = tomllib.loads(text) if toml else json.loads(text)
    except (ValueError, RecursionError) as error:  # both kinds of errors of a parser
        raise ExtractError(
            f"--class-names must be a file as its name says, but {path} cannot be read."
        ) from error
    if isinstance(found, list):
        return [(label, None) for label in found]
    if isinstance(found, dict):
        return list(found.items())
    raise ExtractError(
        f"--class-names must be a list of labels, or a description of each, in {path}."
    )


def _read_csv(path: Path) -> list[tuple[Any, Any]]:
    """Return label and description, or None, of each row; ExtractError without them."""
    try:
        names = [name for name in _COLUMNS if name in read_schema(path)]
        parts = list(table_parts(path, names))
    except ValueError as error:
        raise ExtractError(f"--class-names: {error}") from error
    if "label" not in names:
        raise ExtractError(f"--class-names must have the column label in {path}.")
    columns = {name: [v for part in parts for v in part[name]] for name in names}
    told = columns.get("description", [None] * len(columns["label"]))
    return list(zip(columns["label"], told, strict=True))


def _as_read(label: str) -> str | float:
    """Return what a reader of tables may make of a label."""
    try:
        return float(label)
    except ValueError:
        return label.lower() if label.lower() in ("true", "false") else label


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ExtractError(
        f"--class-names must be texts, got {type(value).__name__}. Put quotes around "
        "labels and descriptions."
    )
