"""What is publicly known of each column, checked; no record is read here."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from typing import Any

from privfeat._checks import check_choice
from privfeat.preprocessing.readings import category_of, seconds_of

KINDS = ("numeric", "integer", "boolean", "category", "date", "ignored")
TREATMENTS = ("scaled", "log", "raw")
REFUSE, NEUTRAL, INDICATOR = "refuse", "neutral", "indicator"
# Codes of a category: one that is not declared, where it is none of the others.
NO_CATEGORY = -1
_OF_NUMBERS = {"kind", "bounds", "unit", "treatment", "missing", "missing_values"}
# What may be said of a column of each kind.
_KEYS = {
    "numeric": _OF_NUMBERS,
    "integer": _OF_NUMBERS,
    "boolean": {"kind", "missing", "missing_values"},
    "category": {"kind", "categories", "unseen", "missing", "missing_values"},
    "date": {"kind", "bounds", "missing", "missing_values"},
    "ignored": {"kind"},
}
_TEXT = (
    "kind of column {name!r} must not be text, whose words are not public. Declare it "
    "category with a public list, or ignored, or make features of it first: "
    "privfeat-extract --text."
)


@dataclass(frozen=True)
class Column:
    """What is known of one column, in numbers."""

    name: str
    kind: str
    # least and largest value: of dates, in seconds since 1970 in UTC; of booleans 0 and
    # 1; of other kinds without meaning
    bounds: tuple[float, float] = (0.0, 1.0)
    categories: tuple[str, ...] = ()
    treatment: str = "scaled"
    missing: str = REFUSE  # "refuse", "neutral" or "indicator"; "fill" by ``fill``
    # the number, or the number of the category, that stands for a missing value
    fill: float = math.nan
    # what else means that a value is missing
    texts: frozenset[str] = frozenset()
    numbers: frozenset[float] = frozenset()
    # the number of the category that others count as, or NO_CATEGORY; None where they
    # are refused
    unseen: int | None = None

    @property
    def outputs(self) -> list[str]:
        """Names of the features that this column becomes."""
        if self.kind == "ignored":
            return []
        parts = [f"{self.name}_{category}" for category in self.categories]
        more = [f"{self.name}_missing"] if self.missing == INDICATOR else []
        return [*(parts or [self.name]), *more]

    @property
    def size(self) -> float:
        """The largest absolute value that a feature of this column can have."""
        return max(map(abs, self.bounds)) if self.treatment == "raw" else 1.0


def parse_columns(columns: Any) -> tuple[Column, ...]:
    """Return the checked declaration of each column, in the order of ``columns``.

    TypeError or ValueError if a declaration is not complete, or is none; messages name
    column and rule.
    """
    if not isinstance(columns, Mapping):
        raise TypeError(
            "columns must be a mapping of names to declarations, got "
            f"{type(columns).__name__}. Pass one, or what read_columns returns."
        )
    parsed = tuple(_parse(name, said) for name, said in columns.items())
    names = [name for column in parsed for name in column.outputs]
    if not names:
        raise ValueError(
            "columns must declare a column that is not ignored, got none. Declare what "
            "a model shall learn from."
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(
            f"columns must become features of different names, got {twice!r} twice. "
            "Rename a column or a category."
        )
    return parsed


def _parse(name: Any, said: Any) -> Column:
    """Return a declared column; TypeError or ValueError if it is declared wrongly."""
    if not isinstance(name, str):
        raise TypeError(f"columns must have names of text, got {name!r}.")
    if not isinstance(said, Mapping):
        raise TypeError(
            f"column {name!r} must be declared by a mapping, got {said!r}. Pass one "
            "such as {'kind': 'ignored'}."
        )
    if said.get("kind") == "text":
        raise ValueError(_TEXT.format(name=name))
    kind = check_choice(f"kind of column {name!r}", said.get("kind"), KINDS)
    unknown = sorted(map(str, said.keys() - _KEYS[kind]))
    if unknown:
        raise ValueError(
            f"column {name!r} of kind {kind} must declare only "
            f"{', '.join(sorted(_KEYS[kind]))}, got {unknown[0]!r}. Leave it out."
        )
    if not isinstance(said.get("unit", ""), str):
        raise TypeError(f"unit of column {name!r} must be text, got {said['unit']!r}.")
    if kind == "ignored":
        return Column(name, kind)
    treatment = said.get("treatment", "scaled")
    check_choice(f"treatment of column {name!r}", treatment, TREATMENTS)
    found = Column(
        name,
        kind,
        bounds=_bounds(name, kind, treatment, said),
        categories=_categories(name, said) if kind == "category" else (),
        treatment=treatment,
        **_absent_values(name, kind, said),
    )
    return _with_unseen(found, said.get("unseen", REFUSE), said.get("missing", REFUSE))


def _bounds(
    name: str, kind: str, treatment: str, said: Mapping[str, Any]
) -> tuple[float, float]:
    """Return the public range of a column."""
    if kind in ("boolean", "category"):
        return (0.0, 1.0)
    given, read = said.get("bounds"), _as_seconds if kind == "date" else _as_number
    what = "dates" if kind == "date" else "finite numbers"
    example = '["2000-01-01", "2030-12-31"]' if kind == "date" else "[0, 120]"
    pair = list(given) if isinstance(given, list | tuple) else []
    low, high = (read(end) for end in pair) if len(pair) == 2 else (math.nan,) * 2
    if not (math.isfinite(high - low) and low < high):
        raise ValueError(
            f"bounds of column {name!r} must be two {what}, the smaller first, got "
            f"{given!r}. Give what everyone may know, such as {example}: never the "
            "least and largest value of the data."
        )
    if treatment == "log" and not low > 0.0:
        raise ValueError(
            f"bounds of column {name!r} must be > 0 for treatment log, got {given!r}. "
            "Give the smallest value that matters: smaller ones count as it."
        )
    return low, high


def _categories(name: str, said: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the categories of a column as texts, or raise ValueError."""
    given = said.get("categories")
    listed = given if isinstance(given, list | tuple) else []
    texts = [_as_category(value) for value in listed]
    reserved = {None, "", "?", REFUSE, NEUTRAL, INDICATOR}
    if len(texts) < 2 or reserved & {*texts} or len({*texts}) < len(texts):
        raise ValueError(
            f"categories of column {name!r} must be at least 2 different texts or "
            "numbers, and none of refuse, neutral and indicator, got "
            f"{given!r}. List every value that everyone knows to be possible: never "
            "those of the data."
        )
    return tuple(str(text) for text in texts)


def _absent_values(name: str, kind: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts and the numbers that mean a missing value."""
    given = said.get("missing_values", [])
    if not isinstance(given, list | tuple) or not all(
        isinstance(value, str) or math.isfinite(_as_number(value)) for value in given
    ):
        raise TypeError(
            f"missing_values of column {name!r} must be a list of texts and numbers, "
            f"got {given!r}."
        )
    return {
        "texts": frozenset(map(category_of, given)),  # a CSV file has texts alone
        "numbers": frozenset(_readings(kind, given)),
    }


def _readings(kind: str, given: Iterable[Any]) -> Iterator[float]:
    """Yield the missing values of a column that is compared by numbers, as it has them.

    Dates are seconds.
    """
    for value in given if kind != "category" else ():
        with suppress(TypeError, ValueError):  # a word
            yield seconds_of(value) if kind == "date" else float(value)


def _with_unseen(column: Column, unseen: Any, missing: Any) -> Column:
    """Return a column that knows what unseen and missing values become."""
    more: dict[str, Any] = {}
    if column.kind == "category":
        found = code_of(column, unseen)
        if unseen not in (REFUSE, NEUTRAL) and found is None:
            raise ValueError(
                f"unseen of column {column.name!r} must be refuse, neutral or one of "
                f"its categories, got {unseen!r}."
            )
        more["unseen"] = NO_CATEGORY if unseen == NEUTRAL else found
    if missing in (REFUSE, NEUTRAL, INDICATOR):
        more["missing"] = missing
    else:
        fill = _CONSTANTS[column.kind](column, missing)
        low, high = column.bounds
        if fill is None or not (column.kind == "category" or low <= fill <= high):
            raise ValueError(
                f"missing of column {column.name!r} must be refuse, neutral, indicator "
                "or a constant: one of its categories, or within its bounds, "
                f"got {missing!r}. Choose it by what everyone may know."
            )
        more |= {"missing": "fill", "fill": float(fill)}
    return Column(**(vars(column) | more))


def code_of(column: Column, value: Any) -> int | None:
    """Return the number of a category, or None for what is none of them."""
    text = _as_category(value)
    return column.categories.index(text) if text in column.categories else None


def _as_category(value: Any) -> str | None:
    try:
        return category_of(value)
    except TypeError:
        return None


def _as_number(value: Any) -> float:
    """Return a number of a declaration, or NaN for what is none."""
    number = not isinstance(value, bool) and isinstance(value, Real)
    try:
        return float(value) if number else math.nan
    except OverflowError:
        return math.nan


def _as_seconds(value: Any) -> float:
    try:
        return seconds_of(value)
    except (TypeError, ValueError):
        return math.nan


_CONSTANTS: dict[str, Callable[[Column, Any], float | None]] = {
    "numeric": lambda column, value: _as_number(value),
    "integer": lambda column, value: (
        number if (number := _as_number(value)).is_integer() else None
    ),
    "boolean": lambda column, value: float(value) if isinstance(value, bool) else None,
    "category": code_of,
    "date": lambda column, value: _as_seconds(value),
}
