"""Names of columns that are no names: a file without a line of names."""

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

A_RECORD = (
    "numbers as a record has them: the file may have no line of names. Give it one, or "
    "name the columns."
)
_MANY = 4  # of so many numbers hardly a record has all in order


def may_be_a_record(names: Iterable[Any]) -> bool:
    """Return whether texts for names are numbers as a record has them.

    ``read_csv`` takes the first record of such a file for the names, which a model
    keeps. Numbers that count up name columns, as pixels, years and wavelengths do: four
    and more in order; fewer only by one, and one alone only as 0, as pandas has it.

    >>> may_be_a_record(["5.1", "3.5", "1.4", "0.2"]), may_be_a_record(["0", "1", "2"])
    (True, False)
    """
    numbers = [*_numbers(names)]
    steps = {other - one for one, other in pairwise(numbers)}
    if len(numbers) >= _MANY:
        return not all(step > 0 for step in steps)
    if len(numbers) == 1:
        return numbers != [0]
    return not (steps <= {1} and all(number.is_integer() for number in numbers))


def _numbers(names: Iterable[Any]) -> Iterator[float]:
    for name in names:
        if isinstance(name, str):
            try:
                number = float(name)
            except ValueError:
                continue
            if math.isfinite(number):
                yield number
