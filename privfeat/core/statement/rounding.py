"""Numbers for people, rounded so that none promises more privacy than is proved."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context


def rounded_up(value: float, digits: int = 6) -> str:
    """Return a cost of so many digits, at most 15, that is not less.

    Examples
    --------
    >>> rounded_up(0.12345611), rounded_up(8.0)
    ('0.123457', '8')
    """
    return _of_digits(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = 6) -> str:
    """Return a number of at most 15 digits that, typed in again, is not more."""
    return _of_digits(value, digits, ROUND_FLOOR)


def _of_digits(value: float, digits: int, rounding: str) -> str:
    written = repr(float(value))  # 1e-5, which as a float is a little more
    rounded = Context(prec=digits, rounding=rounding).create_decimal(written)
    return f"{float(rounded):.{digits}g}"
