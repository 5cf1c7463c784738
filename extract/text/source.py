"""Texts of tables: columns of texts, of classes and of users, row by row."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat.data.splits import CLASSES, SPLIT_NAMES
from privfeat.data.tables.files import FORMATS, is_table, read_schema, table_parts
from privfeat.data.users import named, user_of

from ..arguments import Options
from ..errors import ExtractError
from ..sources import Source, digest_of_list
from .classes import read_classes

# Readers of tables choose how they write the classes of a column by all of its rows: 1
# for 01, True for TRUE, a gap for NA. So no row is left out for its class.
_OTHER_CLASS = (
    "--target must hold a class of --class-names in each row, written alike, got "
    "another, or none, in row {}. Leave such rows out of the table, each by what it "
    "holds itself, and keep 01 or TRUE as texts."
)


class BadTextError(Exception):
    """A row gives no features; the message says why, and never what is in it."""


class TextRows:
    """Texts of one split, in the order of the table; an `ImageList` of texts.

    Of each row ``texts`` has one text, or the two of a pair, None where one is missing;
    ``labels`` the number of its class, -1 where rows have none; ``users``, if there are
    any, its user. ``whole``: ``--limit`` leaves the split as it is.
    """

    def __init__(
        self,
        texts: list[tuple[str | None, ...]],
        labels: NDArray[np.int64],
        users: list[str] | None = None,
        *,
        whole: bool = False,
    ) -> None:
        self.texts, self.labels, self.users = texts, labels, users
        self.whole = whole
        self.names = [str(number) for number in range(1, len(texts) + 1)]

    def __len__(self) -> int:
        return len(self.texts)

    def load(self, index: int) -> tuple[tuple[str, ...], int]:
        """Return the texts and the label of one row.

        Raises
        ------
        BadTextError
            If a text is missing, blank or not in UTF-8.
        """
        texts = tuple(text for text in self.texts[index] if text is not None)
        if len(texts) < len(self.texts[index]):
            raise BadTextError("it is missing")
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            raise BadTextError("it is no text in UTF-8") from None
        return texts, int(self.labels[index])

    @property
    def digest(self) -> str:
        """SHA-256 of texts and labels."""
        return digest_of_list(map(json.dumps, self.texts), self.labels.tolist())


def open_texts(options: Options) -> Source:
    """Read the texts of all splits, and the names of the classes.

    The names are the split ``classes``, one row each, unless texts come in pairs: a
    name is no pair. Without ``target`` rows have no labels, and there are no names.

    ExtractError if there is no such table, split or column, a column holds no texts, or
    a row has a class that is not declared. No message holds a value.
    """
    labelled = options.target is not None
    classes = read_classes(options.class_names) if labelled else {}
    numbers = {label: number for number, label in enumerate(classes)}
    splits = {
        split: _read(path, options, numbers)
        for split, path in _tables(Path(options.data), options.splits).items()
    }
    if len(options.text) == 1 and labelled:
        told: list[tuple[str | None, ...]] = [(text,) for text in classes.values()]
        splits[CLASSES] = TextRows(told, np.arange(len(told)), whole=True)
    return Source(
        name=Path(options.data).resolve().name,
        splits=splits,
        class_names=list(classes) if labelled else None,
        digests={split: rows.digest for split, rows in splits.items()},
        unit="text",
        labelled=labelled,
    )


def _tables(data: Path, splits: Sequence[str] | None) -> dict[str, Path]:
    """Return the table of each split."""
    if CLASSES in (splits or ()):
        raise ExtractError(
            f"--splits must not be {CLASSES!r}: the names of the classes are there."
        )
    if data.is_dir():
        tables = sorted(p for p in data.iterdir() if is_table(p))
        found = {path.stem: path for path in tables}
        if len(found) < len(tables):
            twice = next(p.stem for p in tables if p != found[p.stem])
            raise ExtractError(
                f"--data must hold one table of each split, but {data} has several "
                f"named {twice}. Move the others away."
            )
        wanted = splits or [name for name in SPLIT_NAMES if name in found]
        missing = next((name for name in wanted if name not in found), None)
        if missing is not None or not wanted:
            raise ExtractError(
                f"--data must hold the table of each split, such as train.csv, but "
                f"{data} has none named {missing or 'train'}."
            )
        return {name: found[name] for name in wanted}
    if not data.is_file() or not is_table(data):
        raise ExtractError(
            f"--data must be a table with --text, a file that ends in "
            f"{', '.join(FORMATS)}, or a folder of them, got {str(data)!r}."
        )
    if len(splits or ()) > 1:
        raise ExtractError(f"--splits must be one name for one table, got {splits}.")
    return {(splits or ["train"])[0]: data}


def _read(path: Path, options: Options, numbers: Mapping[str, int]) -> TextRows:
    """Return the texts, classes and users of a table; ExtractError for a bad row."""
    target, users = options.target, options.users
    asked = {"--text": options.text, "--target": [target], "--users": [users]}
    names = {name: option for option, of in asked.items() for name in of if name}
    texts: list[tuple[str | None, ...]] = []
    labels: list[int] = []
    owners: list[NDArray[Any]] = []
    try:
        schema = read_schema(path)
        for name, option in names.items():
            if name not in schema:
                raise ExtractError(
                    f"{option} must be a column of {path}, got {name!r}. `privfeat "
                    "columns` prints their names; a CSV file needs them in its first "
                    "line."
                )
        for part in table_parts(path, list(names)):
            columns = [_texts(part[name], name) for name in options.text]
            texts += zip(*columns, strict=True)
            given = part[target] if target is not None else [None] * len(columns[0])
            found = [numbers.get(_label(value), -1) for value in given]
            if target is not None and -1 in found:
                row = len(labels) + found.index(-1) + 1
                raise ExtractError(_OTHER_CLASS.format(row))
            labels += found
            if users is not None:
                owners.append(part[users])
    except (ValueError, ImportError) as error:
        raise ExtractError(str(error)) from error
    of_rows = _users(owners, users) if users else None
    return TextRows(texts, np.array(labels, np.int64), of_rows)


def _texts(values: NDArray[Any], name: str) -> list[str | None]:
    """Return texts, None for those that are missing: null, NaN, or blank."""
    if any(not isinstance(v, str) and v is not None and v == v for v in values):
        raise ExtractError(
            f"column {name!r} of --text must hold texts, got other values."
        )
    return [v if isinstance(v, str) and v.strip() else None for v in values]


def _label(value: Any) -> str:
    """Return a class as --class-names has it; whole numbers by their digits.

    A missing one is blank, as no class is.
    """
    if value is None or value != value:
        return ""
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value) if whole else value).strip()


def _users(parts: list[NDArray[Any]], name: str) -> list[str]:
    """Return the users of all rows as texts; ExtractError if one names none."""
    try:
        found = named(np.concatenate([np.empty(0, object), *parts])).tolist()
        return [one if isinstance(one, str) else user_of(str(one)) for one in found]
    except ValueError as error:
        raise ExtractError(f"column {name!r} of --users: {error}") from error
