"""Tables of a report, which scroll by themselves where they are wide."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from privfeat.report.svg import element

__all__ = ["format_value", "pairs_table", "rows_table"]


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


def _scrolling(label: str, table: ET.Element) -> ET.Element:
    """Wide tables scroll by themselves, by keyboard as well."""
    return element(
        "div", table, class_="scroll", tabindex=0, role="region", aria_label=label
    )


def format_value(value: Any) -> str:
    """Return a value as text: numbers with six digits, nested values as JSON."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        return "∞" if value == math.inf else f"{value:.6g}"
    if isinstance(value, str | int):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)
