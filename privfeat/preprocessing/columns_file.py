"""The declaration of columns as a TOML file: read, checked, and drafted."""

import json
import os
import tomllib
from collections.abc import Mapping
from datetime import date, time
from pathlib import Path
from typing import Any

from privfeat.preprocessing.declaration import parse_columns

_BLANK = '"?"'
_HEAD = """\
# What everyone may know of each column. Drafted from names, and from types if the file
# has them. Say the kind of each column and what that kind needs, from what is known
# without the data (a form, a code book, a unit): never from the least, largest or
# possible values that the data happen to have. What you say of missing and unseen
# values holds for predictions too: what a fit refuses, predict refuses next month.
"""
_KINDS = "numeric, integer, boolean, category, date or ignored"
_BOUNDS = f"bounds = [{_BLANK}, {_BLANK}]"
_DATES = "[2020-01-01, 2025-12-31]"
_LOG = '# treatment = "log"  # of concentrations, incomes: bounds above 0'
_NUMBER = [_BOUNDS, 'unit = ""', _LOG, 'missing = "refuse"']
# What follows from a type; a text may be a category or a date.
_DRAFTS = {
    "numeric": ['kind = "numeric"', *_NUMBER],
    "integer": ['kind = "integer"', *_NUMBER],
    "boolean": ['kind = "boolean"', 'missing = "refuse"'],
    "date": ['kind = "date"', f"{_BOUNDS}  # such as {_DATES}", 'missing = "refuse"'],
    "category": [
        'kind = "category"',
        f"categories = [{_BLANK}]",
        'unseen = "refuse"',
        'missing = "refuse"',
    ],
}
_UNKNOWN = [
    f"kind = {_BLANK}  # {_KINDS}",
    f"# {_BOUNDS}  # of numbers, and of dates, such as {_DATES}",
    _LOG,
    f"# categories = [{_BLANK}]  # of a category",
    '# unseen = "refuse"  # of a category: or neutral, or one of the categories',
    '# missing = "refuse"  # or neutral, indicator, or a constant',
    '# missing_values = ["-"]  # what stands for a gap beside blanks, NA and the like',
]


def read_columns(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Return the declaration of columns that a TOML file holds.

    Parameters
    ----------
    path : str or path-like
        A file with one table for each column, named like it, whose keys are those of
        `PublicColumns`.

    Returns
    -------
    columns : dict of str to dict
        Public, and made of what JSON has: dates are texts.

    Raises
    ------
    TypeError, ValueError
        If it is no TOML, or a declaration is not complete. Messages begin with the
        path, and name column, rule, value of the file and remedy.

    Examples
    --------
    >>> read_columns("columns.toml")  # doctest: +SKIP
    {'age': {'kind': 'integer', 'bounds': [0, 120], 'unit': 'years'}}
    """
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be in UTF-8: {error}. Save it so.") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(
            f"{path} must be a TOML file: {error}. A name with a blank, a bracket or "
            'an umlaut stands in quotes, ["size (cm)"]; a list is closed.'
        ) from error
    columns: dict[str, dict[str, Any]] = plain_columns(found)
    try:
        parse_columns(columns)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from error
    return columns


def plain_columns(columns: Any) -> Any:
    """Return a declaration with dates as texts and tuples as lists, as JSON has it."""
    if isinstance(columns, Mapping):
        return {name: plain_columns(value) for name, value in columns.items()}
    if isinstance(columns, list | tuple):
        return [plain_columns(value) for value in columns]
    return columns.isoformat() if isinstance(columns, date | time) else columns


def draft_columns(schema: Mapping[str, str | None]) -> str:
    r"""Return the text of a TOML file that declares columns, with blanks to fill in.

    Parameters
    ----------
    schema : mapping of str to str or None
        Kind of each column by its type (``"numeric"``, ``"integer"``, ``"boolean"``,
        ``"category"`` or ``"date"``); None where the type does not tell. Public.

    Examples
    --------
    >>> print(draft_columns({"seen before": "boolean"}).split("\n\n")[1])
    ["seen before"]
    kind = "boolean"
    missing = "refuse"
    <BLANKLINE>
    """
    tables = [
        "\n".join([f"[{_key(name)}]", *_DRAFTS.get(str(kind), _UNKNOWN)])
        for name, kind in schema.items()
    ]
    return "\n\n".join([_HEAD.rstrip(), *tables]) + "\n"


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    quoted = json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
    return name if bare else quoted
