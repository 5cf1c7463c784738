"""One value of a table, or of a declaration, in the form in which it is compared."""

import math
import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat.data.users import name_of

_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")
# As files have whole numbers of a column that has gaps as well.
_WHOLE = re.compile(r"(0|-?[1-9][0-9]*)\.0+")
# As Python writes floats from 1e16 on.
_HUGE = re.compile(r"-?[1-9](\.[0-9]+)?e\+[0-9]+")
# As pyarrow reads whole numbers, too.
_HEXADECIMAL = re.compile(r"[-+]?0x[0-9a-f]+", re.IGNORECASE)
_EXACT = 2**53  # from there on, floats stand for several whole numbers
# Seconds in the long units of dates, and how many of the shortest are a microsecond.
_LONG = {"W": 604800.0, "D": 86400.0, "h": 3600.0, "m": 60.0}
_SHORTEST = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}
_FAR = 10**6  # years, or months, beyond which a date is as good as any
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def category_of(value: Any) -> str:
    """Return the text by which a category is compared: 3, 3.0, "3" and "3.0" are one.

    TypeError for what is neither text nor a number, and for floats that may be of
    several long codes: one gap makes floats of a column of whole numbers.
    """
    if isinstance(value, str):
        name = name_of(value)
        whole = _WHOLE.fullmatch(name)
        huge = _HUGE.fullmatch(name) and abs(float(name)) >= _EXACT
        if huge or (whole and abs(int(whole[1])) >= _EXACT):
            raise TypeError("a category must not be a rounded float.")
        return whole[1] if whole else name
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise TypeError("a category must be text or a number.")
    if isinstance(value, Integral) or (isinstance(value, Decimal) and _is_whole(value)):
        return str(int(value))
    number = float(value)
    if _EXACT <= abs(number) < math.inf:
        raise TypeError("a category must not be a rounded float.")
    return str(int(number)) if number.is_integer() else str(number)


def as_number(text: str) -> str:
    """Return a category that reads as a number as a table of numbers has it.

    "007" as "7", "2.10" as "2.1" and "0x10" as "16"; another category as it is.
    """
    if _HEXADECIMAL.fullmatch(text):
        whole = int(text, 16)  # one of 64 bits is negative there
        return str(whole - 2**64 if 2**63 <= whole < 2**64 else whole)
    for read in (int, float):  # whole numbers are not rounded
        with suppress(TypeError, ValueError):
            number = read(text)
            return text if number != number else category_of(number)
    return text


def _is_whole(value: Decimal) -> bool:
    return value.is_finite() and value.adjusted() < 99 and value == round(value)


def is_truth_word(text: str) -> bool:
    """Return whether NumPy writes a truth value so, in any case of its letters."""
    return text.lower() in ("true", "false")


def truth_of(value: Any) -> bool:
    """Return what a boolean, 0, 1, true, false, yes or no says; else ValueError."""
    word = category_of(value).lower() if isinstance(value, str) else None
    if word in _TRUE or (word is None and value in (0, 1) and bool(value)):
        return True
    if word in _FALSE or (word is None and value in (0, 1)):
        return False
    raise ValueError("a boolean must be true or false.")


def seconds_of(value: Any) -> float:
    """Return the seconds from 1970, in UTC, of a date, a time, or an ISO 8601 text.

    What names no time zone is in UTC, and a date is its first second. Whatever is
    below a microsecond is cut off.
    """
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    if not isinstance(value, date):
        raise TypeError("a date must be a date, a time or a text.")
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if type(value) is not datetime:  # one of pandas may have nanoseconds
        value = datetime.combine(value.date(), value.timetz())
    moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    since: timedelta = moment - _EPOCH
    return since.total_seconds()


def seconds_of_dates(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the seconds from 1970 of an array of dates, NaN where one is missing.

    However far away they are: what does not fit into microseconds would come out as a
    date of our time. Whatever is below a microsecond is cut off: one record that has
    nanoseconds gives all of a table that unit, and a time must be one number in all.
    """
    unit, count = np.datetime_data(values.dtype)
    ticks = values.astype(values.dtype.newbyteorder("=")).view(np.int64)
    if unit in ("Y", "M"):  # of different lengths
        near = np.clip(ticks, -_FAR, _FAR) * count
        days = near.view(f"datetime64[{unit}]").astype("datetime64[D]").view(np.int64)
        seconds = days * 86400.0
    elif unit == "ms":
        seconds = ticks * float(count) / 1e3
    elif unit == "us" or unit in _SHORTEST:
        seconds = _of_microseconds(ticks, count, _SHORTEST.get(unit, 1))
    else:
        seconds = ticks * (count * _LONG.get(unit, 1.0))
    return np.where(np.isnat(values), np.nan, seconds)


def _of_microseconds(
    ticks: NDArray[np.int64], count: int, parts: int
) -> NDArray[np.float64]:
    """Return ``ticks`` of ``count / parts`` microseconds in seconds, nearest floats."""
    if count == 1 and np.all(np.abs(ticks // parts) < _EXACT):  # of NaT as well: < 0
        return ticks // parts / 1e6
    exact = [int(each) * count // parts / 10**6 for each in ticks.ravel()]
    return np.array(exact, np.float64).reshape(ticks.shape)
