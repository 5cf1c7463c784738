"""Calls of other packages on private data, whose messages may show the data.

What NumPy, scikit-learn, pandas or an object of the user raises, or warns of, may hold
values, labels, ids or counts. An error becomes one with the words of `_rewording`,
without cause, context or notes, or a general one; a warning that is not known is
dropped.
"""

import math
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, nullcontext, suppress
from itertools import pairwise
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from privfeat._files import NOT_WHOLE, is_whole
from privfeat._process import MLFLOW, unlogged
from privfeat._rewording import WARNINGS, category_of, refusal_of
from privfeat._types import found_untyped

P = ParamSpec("P")
R = TypeVar("R")

_A_RECORD = (
    "numbers as a record has them: the file may have no line of names. Give it one, or "
    "name the columns."
)
_MANY = 4  # of so many numbers hardly a record has all in order
# How the types of dates, times and durations begin in NumPy, pandas, polars, Arrow.
_DATES = ("date", "time", "period", "duration")
_OF_DATES = "Leave them out, or pass the days since a public date."


def without_data(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return ``function(*args, **kwargs)``; what it raises or warns of shows no data.

    Nor does MLflow log it. MemoryError and TypeError, in our words, for their own kind,
    and ValueError for all others.
    """
    quiet = unlogged() if MLFLOW in sys.modules else nullcontext()
    with without_warnings() as texts, quiet:
        try:
            result = function(*args, **kwargs)
            refusal = None
        except Exception as error:  # noqa: BLE001 - anything may show data
            refusal = refusal_of(error)
    if refusal is not None:  # outside of the handler, so that it has no context
        raise refusal
    for text in texts:  # that another one was raised would show something
        if any(re.fullmatch(pattern, text) for pattern in WARNINGS):
            warnings.warn(text, category_of(text), stacklevel=3)
    return result


# A pattern that matches all texts, and is known again in a filter that somebody made.
_HIDES_ALL = "(?#privfeat)"


class _Hidden(threading.local):
    """In how many blocks without warnings this thread is."""

    depth = 0


_hidden = _Hidden()


def forget_hidden() -> None:
    """Take away the filters by which jobs of scikit-learn repeat that nothing is shown.

    They are of the process: where two threads leave ``catch_warnings`` in another order
    than they came, the filters stay, and hide each later `PrivacyWarning`.
    """
    if _hidden.depth:
        return
    filters = cast("list[Any]", warnings.filters)
    for each in list(filters):
        if isinstance(each[1], re.Pattern) and each[1].pattern == _HIDES_ALL:
            with suppress(ValueError):  # another thread was faster
                filters.remove(each)


@contextmanager
def without_warnings(category: type[Warning] = Warning) -> Iterator[list[str]]:
    """Drop the warnings of this thread, and give their texts.

    ``warnings.catch_warnings`` is for one thread: where two threads leave it in another
    order than they came, its filters stay, and hide each later `PrivacyWarning`.
    """
    own = _OfThisThread()
    filters = cast("list[Any]", warnings.filters)
    filters.insert(0, ("ignore", own, category, None, 0))
    _hidden.depth += 1
    try:
        yield own.texts
    finally:
        _hidden.depth -= 1
        forget_hidden()
        own.is_open = False  # another thread may put back a copy of the filters
        filters = cast("list[Any]", warnings.filters)
        with suppress(ValueError):  # another thread put back older filters
            filters.remove(("ignore", own, category, None, 0))


class _OfThisThread:
    """Stands for the pattern of a filter; matches the warnings of one thread."""

    def __init__(self) -> None:
        self.is_open, self.texts = True, list[str]()
        self._thread = threading.get_ident()

    @property
    def pattern(self) -> str:
        """What scikit-learn hands to its jobs, as of a compiled expression."""
        return _HIDES_ALL if self._is_here() else "(?!)"  # matches nothing

    def _is_here(self) -> bool:
        return self.is_open and threading.get_ident() == self._thread

    def match(self, text: str) -> bool:
        if not self._is_here():
            return False
        self.texts.append(text)
        return True


def array_of(values: Any, dtype: type | np.dtype[Any] | None = None) -> NDArray[Any]:
    """Return ``numpy.asarray`` of private values; what it raises shows no data.

    But one record decides the type of no other. Of a list of texts and numbers each
    stays what it is, an object: NumPy makes texts of all, with other digits. And
    shorter floats come from float64: one fraction would round large integers twice.

    TypeError for texts alone, complex numbers or dates, whose unit follows from all,
    where floats are asked for.
    """
    refuse_altered(values)
    if dtype is object:
        return without_data(np.asarray, values, object)
    found = without_data(_of_own_types, values)
    if dtype is None:
        return found
    if found.dtype.kind in "USc":
        raise TypeError("X and y must hold numbers, got text or complex numbers.")
    if without_data(holds_dates, found):
        raise TypeError(f"values must be numbers, got dates. {_OF_DATES}")
    if dtype in (np.float16, np.float32) and found.dtype.char not in "efd":
        found = without_data(np.asarray, found, np.float64)
    return without_data(np.asarray, found, dtype)


def _of_own_types(values: Any) -> NDArray[Any]:
    found = np.asarray(values)
    if found.dtype.kind in "US" and not hasattr(values, "dtype"):
        each = np.asarray(values, object)
        if len({str if isinstance(one, str) else type(one) for one in each.flat}) > 1:
            return each
    return found


def check_columns(**tables: Any) -> list[list[Any]]:
    """Return the names of the columns of each table; an array has none.

    TypeError for a column of dates, which would become numbers unnoticed; the message
    names it, as names are part of the public schema. Also for what `refuse_altered`
    refuses. ValueError for names that may be a record (`may_be_a_record`).
    """
    refuse_altered(*tables.values())
    names = []
    for name, table in tables.items():
        columns, dates = without_data(_columns_of, table)
        if dates is not None:
            raise TypeError(f"{name} must hold numbers, got dates{dates}. {_OF_DATES}")
        if columns and may_be_a_record(columns):
            raise ValueError(f"{name} must have names of columns, got {_A_RECORD}")
        names.append(columns)
    return names


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


def _columns_of(table: Any) -> tuple[list[Any], str | None]:
    """Return the names of columns, and where the first one of dates is, if any is."""
    if isinstance(table, list | tuple):  # whose unit of dates would follow from all
        with suppress(ValueError):  # rows of several lengths, refused later
            table = np.asarray(table)
    arrow = hasattr(table, "column_names")  # whose columns are no names
    columns = table.column_names if arrow else getattr(table, "columns", None)
    if columns is None:
        return [], "" if holds_dates(table) else None
    names = list(columns)
    for place, name in enumerate(names):
        column = table.iloc[:, place] if hasattr(table, "iloc") else table[name]
        if holds_dates(column):
            return names, f" in column {name!r}"
    return names, None


def holds_dates(values: Any) -> bool:
    """Return whether NumPy makes of values its own dates, or objects that are such.

    They convert to numbers as others do, and their unit follows from all values. The
    name of a type tells little: some are categories of dates, some tables have none.
    """
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "biufcSU":
        return False
    if str(dtype).lower().startswith(_DATES):  # with a time zone they become objects
        return True
    found = np.asarray(values)
    fields = [found[name] for name in found.dtype.names or ()]
    parts = found.flat if found.dtype.kind == "O" else fields or [found]
    kinds = (getattr(getattr(part, "dtype", None), "kind", None) for part in parts)
    return any(kind in ("m", "M") for kind in kinds)


def list_of(name: str, values: Any) -> list[Any]:
    """Return private values, one for each record, as a list.

    TypeError for what is iterated over in another order, or gives something else than
    values: the keys of a mapping, the columns of a table, the letters of a text. Also
    for what `refuse_altered` refuses.
    """
    refuse_altered(values)
    table = without_data(getattr, values, "ndim", 1) != 1
    if table or isinstance(values, Mapping | Set | str | bytes):
        raise TypeError(
            f"{name} must be one-dimensional: a list, an array or a column, got "
            f"{type(values).__name__}. Pass one value for each record, in their order."
        )
    return without_data(lambda: list(getattr(values, "tolist", lambda: values)()))


def refuse_altered(*tables: Any) -> None:
    """Raise TypeError for what gives other values than it holds, or lists of such.

    Masked arrays that hide an entry: NumPy and scikit-learn drop the mask, and take
    what is under it. And datasets of HDF5 that may round some records by others, and
    what NumPy would give a type that one record decides (`found_untyped`).
    """
    for table in tables:
        if (found := without_data(found_untyped, table)) is not None:
            raise TypeError(f"X, y and groups must each have a type, got {found}")
        parts = table if isinstance(table, list | tuple) else [table]
        if any(map(_may_be_altered, parts)):
            raise TypeError(f"X, y and groups must be stored whole, got {NOT_WHOLE}")
        masked = (part for part in parts if isinstance(part, np.ma.MaskedArray))
        if any(map(np.ma.is_masked, masked)):
            raise TypeError(
                "X, y and groups must not be masked arrays with hidden entries, since "
                "what is under a mask would count. Leave those records out, or fill "
                "in a public constant."
            )


def _may_be_altered(values: Any) -> bool:
    """Return whether values are of h5py, which is not imported for that, and not whole.

    A view of a dataset (``astype``) does not say of which.
    """
    h5py = sys.modules.get("h5py")
    if h5py is not None and isinstance(values, h5py.Dataset):
        return not is_whole(values)
    return type(values).__module__.partition(".")[0] == "h5py"
