"""One value of a table, or of a declaration, in the form in which it is compared."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from privfeat.data.users import name_of

_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def category_of(value: Any) -> str:
    """Return the text by which a category is compared: 3, 3.0 and "3" are one.

    TypeError for what is neither text nor a number.
    """
    if isinstance(value, str):
        return name_of(value)
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise TypeError("a category must be text or a number.")
    if isinstance(value, Integral):
        return str(int(value))
    number = float(value)
    return str(int(number)) if number.is_integer() else str(number)


def truth_of(value: Any) -> bool:
    """Return what a boolean, 0, 1, true, false, yes or no says; else ValueError."""
    word = value.strip().lower() if isinstance(value, str) else None
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
