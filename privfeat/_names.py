"""Names of columns that are no names: a file without a line of names."""

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

A_RECORD = (
    "numbers as a record has them: the file may have no line of names. Give it one, or "
    "name the columns."
)
_FEWEST = 4  # of so many numbers hardly a record has all in order


def may_be_a_record(names: Iterable[Any]) -> bool:
    """Return whether texts for names are numbers as a record has them.

    ``read_csv`` takes the first record of such a file for the names, which a model
    keeps. Numbers that count up name columns, as pixels, years and wavelengths do:
    whole ones, or four and more.

    >>> may_be_a_record(["5.1", "3.5", "1.4", "0.2"]), may_be_a_record(["0", "1", "2"])
    (True, False)
    """
    numbers = [*_numbers(names)]
    in_order = all(one < other for one, other in pairwise(numbers))
    whole = all(number.is_integer() for number in numbers)
    return not (in_order and (whole or len(numbers) >= _FEWEST))


def _numbers(names: Iterable[Any]) -> Iterator[float]:
    for name in names:
        if isinstance(name, str):
            try:
                number = float(name)
            except ValueError:
                continue
            if math.isfinite(number):
                yield number
