"""From the values of one column to features, each row by itself.

Nothing here depends on another row: not on how many there are, nor on their types. What
a row becomes follows from that row and the declaration alone.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._messages import holds_dates
from privfeat.core.callers.forms import ABSENT, reads_as_gap
from privfeat.preprocessing.declaration import (
    INDICATOR,
    REFUSE,
    Column,
)
from privfeat.preprocessing.readings import (
    as_number,
    category_of,
    is_truth_word,
    seconds_of,
    seconds_of_dates,
    truth_of,
)

_RULES = {
    "numeric": "numbers, as in 1234.5",
    "integer": "whole numbers",
    "boolean": "true and false, yes and no, or 1 and 0",
    "category": "texts or numbers, as they are declared: codes such as 007, "
    "and those of 2**53 and more, as texts, and with no gaps beside a category such as "
    "NA, as privfeat.data.read_table reads a CSV file and Parquet keeps texts",
    "date": "dates as ISO 8601 has them, such as 2024-05-31 or 2024-05-31T08:00+02:00",
}
_OTHER = {"boolean": "a category of the two words that it has"}
_MISSING = (
    "Declare missing as neutral or a public constant (before a fit also as indicator), "
    "or leave such rows out of the table."
)


class Refusals:
    """What tables were refused for, so that one error names all such columns.

    It keeps messages, which hold no value, and not the errors: these know their frames.
    """

    def __init__(self) -> None:
        self._messages: dict[str, None] = {}  # in order, each once
        self._type: type[TypeError | ValueError] = ValueError

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Go on after the body, whatever it refuses."""
        try:
            yield
        except (TypeError, ValueError) as error:
            self._type = type(error) if not self._messages else self._type
            self._messages.update(dict.fromkeys(str(error).splitlines()))

    def raised(self) -> None:
        """Raise one error for all that was refused, if anything was."""
        if self._messages:
            raise self._type("\n".join(self._messages))


def outputs_of(column: Column, values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the features that the values of a column become.

    ``values``, of shape (n_samples,), are sensitive: numbers, booleans, dates, or
    objects. Features have shape (n_samples, len(column.outputs)) and are finite: in
    [-1, 1], unless the treatment is ``"raw"``; then within the bounds.

    TypeError or ValueError if a value is of another kind, missing, or unseen, where
    that is refused. The message names the column and the rule, and no value.
    """
    numbers, missing = numbers_of(column, values)
    if column.kind == "category":
        codes = np.arange(len(column.categories))
        features = (numbers[:, None] == codes).astype(np.float64)
    else:
        features = np.nan_to_num(_placed(column, numbers)[:, None], nan=0.0)
    if column.missing == INDICATOR:
        features = np.column_stack([features, missing])
    return np.asarray(features, np.float64)


def numbers_of(
    column: Column, values: NDArray[Any], remedy: str = _MISSING
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return values as numbers, those of categories too, and which were missing.

    What is missing has the number of the constant that stands for it, or is NaN;
    ``remedy`` is for a column that must have no missing value.
    TypeError or ValueError as for `outputs_of`.
    """
    numbers = _read(column, values)
    missing = np.isnan(numbers)
    if column.missing == REFUSE and missing.any():
        raise ValueError(
            f"column {column.name!r} must have no missing value, as it is declared, "
            f"got one. {remedy}"
        )
    return np.where(missing, column.fill, numbers), missing


def _placed(column: Column, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers clipped to the bounds, which become -1 and 1 unless raw."""
    low, high = column.bounds
    clipped = np.clip(numbers, low, high)
    if column.treatment == "raw":
        middle = low + (high - low) / 2.0
        return np.where(np.isnan(clipped), middle, clipped)
    if column.treatment == "log":
        clipped, low, high = np.log(clipped), math.log(low), math.log(high)
    return np.clip(2.0 * ((clipped - low) / (high - low)) - 1.0, -1.0, 1.0)


def _read(column: Column, values: NDArray[Any]) -> NDArray[np.float64]:
    """Return each value as a number, or the number of its category; NaN if missing."""
    refused: type[Exception] | None = None
    try:
        numbers = _numbers(column, values)
    except Exception as error:  # noqa: BLE001 - any object may be in a table
        refused = KeyError if isinstance(error, KeyError) else TypeError
    # outside of the handler, so that the error has no context, which holds a value
    if refused is KeyError:
        raise ValueError(
            f"column {column.name!r} must hold the categories that are declared, got "
            "another. Declare unseen as neutral or one of them, or add those that the "
            "code book has and the declaration lacks."
        )
    if refused is not None:
        raise TypeError(
            f"column {column.name!r} of kind {column.kind} must hold "
            f"{_RULES[column.kind]}, got something else. Correct the table, declare "
            f"{_OTHER.get(column.kind, 'another kind')}, or list in missing_values "
            "what the code book has for a missing value."
        )
    return numbers


def _numbers(column: Column, values: NDArray[Any]) -> NDArray[np.float64]:
    """Return a column as float64, NaN where a value is missing; raise for others."""
    kind = values.dtype.kind
    if kind in "fO":
        _refuse_rounded(column, values)
    if column.kind in ("numeric", "integer") and kind in "iuf":
        numbers = values.astype(np.float64)
    elif column.kind == "date" and kind == "M":
        numbers = seconds_of_dates(values)
    else:
        # which NumPy would turn into whole numbers
        if kind in "mM" or (column.kind != "date" and holds_dates(values)):
            raise TypeError("dates")
        one, listed = _reader(column), values.tolist()
        if column.kind in ("category", "boolean"):  # compared as texts
            _refuse_numbers(column, listed)
        # one by one, so that no value decides how others are read
        found = [math.nan if _absent(column, value) else one(value) for value in listed]
        numbers = np.array(found, np.float64)
    if column.kind != "boolean" and column.numbers:  # whose words are 0 and 1
        numbers = np.where(np.isin(numbers, [*column.numbers]), np.nan, numbers)
    there = numbers[~np.isnan(numbers)]
    if column.kind == "integer" and not np.array_equal(np.floor(there), there):
        raise ValueError("not a whole number")
    return numbers


def _refuse_rounded(column: Column, values: NDArray[Any]) -> None:
    """Raise TypeError for a value that is a declared number, but for rounding.

    pandas makes float32 of a column (``downcast``) unless one record has more digits:
    0.1 would be found then, and else not. Many types keep such numbers as objects. Of
    an array of float16 or float32 the type alone is refused, if it holds no number that
    is declared as it is.
    """
    narrow = values.dtype.kind == "f" and values.dtype.itemsize < 8
    rounds = values.dtype.type if narrow else np.float32
    declared = {*map(str, column.numbers), *column.categories, *column.texts}
    rounded = set()
    for text in map(as_number, declared):
        with suppress(ValueError), np.errstate(over="ignore"):
            number = float(text)
            if number == number and (other := float(rounds(number))) != number:
                rounded.add(other)
    floats = values
    if values.dtype.kind == "O":
        floats = np.array([v for v in values if isinstance(v, float | np.floating)])
    if rounded and (narrow or np.isin(floats, [*rounded]).any()):
        raise TypeError("a rounded number")


def _refuse_numbers(column: Column, values: list[Any]) -> None:
    """Raise TypeError for a value that means another where its column has other types.

    Readers of tables make numbers of all values of a column, or of none if one record
    has a letter. So numbers are refused where a text is declared that no number is
    written as, such as 007 or True, and so are texts that are not declared but read as
    the number of one that is. Some make gaps of "NA" and the like in columns of numbers
    alone: so gaps are refused where one of these is declared. They make truth values
    of a column of TRUE and FALSE alone, which they write as True and False: so a truth
    word that is declared in other capitals is refused.
    """
    known = {*column.categories, *column.texts}
    marks = any(map(reads_as_gap, column.categories))
    numbers = {*map(as_number, known)}
    truths = {text.lower() for text in known if is_truth_word(text)}
    # beside numbers NumPy makes 1.0 of True, and "True" of it beside a text
    coded = any(as_number(text) != text or is_truth_word(text) for text in known)
    for value in values:
        if isinstance(value, str):
            name = category_of(value)
            alike = as_number(name) in numbers or name.lower() in truths
            if alike and name not in known:
                raise TypeError("not as declared")
        elif coded and _is_number(value) and value == value:
            raise TypeError("a number")
        elif marks and _absent(column, value):
            raise TypeError("a gap")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool)


def _absent(column: Column, value: Any) -> bool:
    """Return whether a value says that there is none."""
    if value is None or type(value).__name__ in ABSENT:
        return True
    text, number = isinstance(value, str), _is_number(value)
    if text and (name := value.strip()) not in column.categories:
        if not name or reads_as_gap(name):
            return True
    elif number and value != value:
        return True
    with suppress(TypeError):
        return (text or number) and category_of(value) in column.texts
    return False  # a rounded float, which a reader of categories refuses


def _reader(column: Column) -> Callable[[Any], float]:
    """Return what makes a number of a value that is there."""
    if column.kind == "boolean":
        return truth_of
    if column.kind == "date":
        return seconds_of
    if column.kind != "category":
        return _number
    codes = {text: code for code, text in enumerate(column.categories)}
    if column.unseen is None:
        return lambda value: codes[category_of(value)]
    unseen = column.unseen
    return lambda value: codes.get(category_of(value), unseen)


def _number(value: Any) -> float:
    word = isinstance(value, str) and "_" in value  # which Python reads as a number
    if word or not (isinstance(value, str) or _is_number(value)):
        raise TypeError("not a number")
    try:
        return float(value)
    except OverflowError:  # an integer out of all bounds
        return math.inf if value > 0 else -math.inf
