"""Tables of a report, which scroll by themselves where they are wide."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from privfeat.report.svg import element

__all__ = ["format_value", "nested_tables", "pairs_table", "rows_table"]


def pairs_table(label: str, pairs: Iterable[tuple[str, Any]]) -> ET.Element:
    """Return a table of names and values; ``label`` is for screen readers."""
    rows = [
        element(
            "tr",
            element("th", str(name), scope="row"),
            element("td", format_value(value), class_="long"),
        )
        for name, value in pairs
    ]
    return _scrolling(label, element("table", element("tbody", *rows)))


def rows_table(label: str, rows: Sequence[Mapping[str, Any]]) -> ET.Element:
    """Return a table with a row for each mapping; missing values are left empty."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    head = element("tr", *(element("th", str(c), scope="col") for c in columns))
    body = [
        element(
            "tr",
            *(
                element("td", format_value(row.get(c, "")), class_="number")
                for c in columns
            ),
        )
        for row in rows
    ]
    table = element("table", element("thead", head), element("tbody", *body))
    return _scrolling(label, table)


def nested_tables(label: str, values: Mapping[str, Any]) -> list[ET.Element]:
    """Return a table of the plain values, then tables of nested ones with headings.

    A list of mappings is a table of rows. Underscores of names become spaces, empty
    lists are left out.
    """
    plain, parts = [], []
    for key, value in values.items():
        name = str(key).replace("_", " ")
        if isinstance(value, Mapping):
            parts += [element("h3", name), *nested_tables(f"{label}: {name}", value)]
        elif _is_table(value):
            rows = [
                {str(k).replace("_", " "): v for k, v in row.items()} for row in value
            ]
            parts.append(rows_table(f"{label}: {name}", rows))
        elif value != []:
            plain.append((name, value))
    return [pairs_table(label, plain), *parts] if plain else parts


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(row, Mapping) for row in value)
    )


def _scrolling(label: str, table: ET.Element) -> ET.Element:
    """Wide tables scroll by themselves, by keyboard as well."""
    return element(
        "div", table, class_="scroll", tabindex=0, role="region", aria_label=label
    )


def format_value(value: Any) -> str:
    """Return a value as text: numbers with six digits, nested values with commas.

    Examples
    --------
    >>> format_value({"jax": "0.10", "sizes": [1, 0.25], "none": {}})
    'jax: 0.10, sizes: (1, 0.25), none: ()'
    """
    if isinstance(value, float):
        return "∞" if value == math.inf else f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_inner(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_inner, value))
    return str(value)


def _inner(value: Any) -> str:
    nested = isinstance(value, Mapping | list | tuple)
    return f"({format_value(value)})" if nested else format_value(value)
