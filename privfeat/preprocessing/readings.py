"""One value of a table, or of a declaration, in the form in which it is compared."""

import re
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
# Seconds in the long units of dates, and what parts of one the short ones are.
_LONG = {"W": 604800.0, "D": 86400.0, "h": 3600.0, "m": 60.0}
_SHORT = {"ms": 1e3, "us": 1e6, "ns": 1e9, "ps": 1e12, "fs": 1e15, "as": 1e18}
_FAR = 10**6  # years, or months, beyond which a date is as good as any
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def category_of(value: Any) -> str:
    """Return the text by which a category is compared: 3, 3.0, "3" and "3.0" are one.

    TypeError for what is neither text nor a number.
    """
    if isinstance(value, str):
        name = name_of(value)
        whole = _WHOLE.fullmatch(name)
        return whole[1] if whole else name
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise TypeError("a category must be text or a number.")
    if isinstance(value, Integral):
        return str(int(value))
    number = float(value)
    return str(int(number)) if number.is_integer() else str(number)


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

    What names no time zone is in UTC, and a date is its first second.
    """
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    if not isinstance(value, date):
        raise TypeError("a date must be a date, a time or a text.")
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    since: timedelta = moment - _EPOCH
    return since.total_seconds()


def seconds_of_dates(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the seconds from 1970 of an array of dates, NaN where one is missing.

    However far away they are: what does not fit into microseconds would come out as a
    date of our time.
    """
    unit, count = np.datetime_data(values.dtype)
    ticks = values.astype(values.dtype.newbyteorder("=")).view(np.int64)
    if unit in ("Y", "M"):  # of different lengths
        near = np.clip(ticks, -_FAR, _FAR) * count
        days = near.view(f"datetime64[{unit}]").astype("datetime64[D]").view(np.int64)
        seconds = days * 86400.0
    else:
        seconds = ticks * (count * _LONG.get(unit, 1.0)) / _SHORT.get(unit, 1.0)
    return np.where(np.isnat(values), np.nan, seconds)
