"""The public declaration of a table, as a report shows it."""

from collections.abc import Mapping
from typing import Any

_KINDS = {
    "numeric": "number",
    "integer": "whole number",
    "boolean": "yes or no",
    "category": "category",
    "date": "date",
    "ignored": "not read",
}
_TREATMENTS = {"log": ", by its logarithm", "raw": ", not scaled"}
_MISSING = {
    "refuse": "refused",
    "neutral": "counts as the middle",
    "indicator": "counts as the middle, and is marked",
}
_UNSEEN = {"refuse": "refused", "neutral": "counts as none of them"}


def columns_of(table: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return a row for each declared column, what is predicted first.

    ``table`` is as `privfeat.persistence.load_table` returns it.
    """
    columns, target = table["columns"], table["target"]
    names = sorted(columns, key=lambda name: name != target)
    return [_row(name, columns[name], name == target) for name in names]


def _row(name: str, said: Mapping[str, Any], is_target: bool) -> dict[str, str]:
    """Return what the report shows of one declared column."""
    kind = said["kind"]
    predicted = "target" if "bounds" in said else "class"
    ends = " to ".join(map(str, said.get("bounds", ())))
    values = ", ".join(map(str, said.get("categories", ())))
    row = {
        "column": f"{name} (the {predicted})" if is_target else name,
        "kind": _KINDS[kind] + _TREATMENTS.get(said.get("treatment", ""), ""),
        "may be": " ".join(part for part in (ends, said.get("unit", "")) if part)
        or values,
        "missing": "",
        "any other": "",
    }
    if kind != "ignored":
        missing = said.get("missing", "refuse")
        texts = ", ".join(map(str, said.get("missing_values", ())))
        row["missing"] = _MISSING.get(str(missing), f"counts as {missing}")
        if kind == "category":
            row["missing"] = row["missing"].replace("the middle", "none of them")
        row["missing"] += f" (so does: {texts})" if texts else ""
        row["any other"] = "cut to the range" if "bounds" in said else "refused"
    if kind == "category":
        unseen = said.get("unseen", "refuse")
        row["any other"] = _UNSEEN.get(str(unseen), f"counts as {unseen}")
    return row
