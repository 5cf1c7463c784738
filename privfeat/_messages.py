"""Calls of other packages on private data, whose messages may show the data.

What NumPy, scikit-learn, pandas or an object of the user raises, or warns of, may hold
values, labels, ids or counts. An error becomes one with the words of this file, without
cause, context or notes, or a general one; a warning that is not known is dropped.
"""

import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from privfeat._names import A_RECORD, may_be_a_record
from privfeat._process import MLFLOW, unlogged

P = ParamSpec("P")
R = TypeVar("R")

SPARSE = (
    "X and y must not be sparse matrices here. Sparse input is refused: pass dense "
    "arrays, or sparse rows to DPAdamLinear, DPLeastSquares or DPNearestMean with "
    "center=False, since centred rows are dense."
)
# A part of their message, and what we raise instead. The estimator checks of
# scikit-learn look for some of these words.
_REWORDED = {
    "Reshape your data": "X must be a 2D array, got another. Reshape your data.",
    "Complex data not supported": "Complex data not supported: X must be real.",
    "could not convert string": "X and y must hold numbers, got text. Leave such "
    "columns out, or make one of 0 and 1 for each value of a public list: "
    "PublicColumns does.",
    "inconsistent numbers of samples": "X and y must not have inconsistent lengths.",
    "y should be a 1d array": "y should be a 1d array, got another shape.",
    "inhomogeneous shape": "X and y must be rectangular: rows of one length.",
    "setting an array element": "X and y must be rectangular: rows of one length.",
    "y cannot be None": "fit requires y to be passed, but the target y is None.",
    "target y is None": "fit requires y to be passed, but the target y is None.",
    "argument must be a string or a real number": "X and y must hold numbers: an "
    "argument must be a string or a real number, got another object.",
    "sparse": SPARSE,
    "Sparse": SPARSE,
    "requires grad": "X and y must not require gradients. Pass tensor.detach().",
    "Unknown label type": "y must hold classes. Unknown label type: pass integers or "
    "strings, not continuous numbers.",
    "contains NaN": "X and y must be finite: Input contains NaN. Fill gaps with a "
    "public constant, not with the mean of the records.",
    "contains infinity": "X and y must be finite: Input contains infinity or a value "
    "too large for its type.",
    "0 feature(s)": "X must have features: found 0 feature(s) (shape=(, 0)) while a "
    "minimum of 1 is required.",
    "0 sample(s)": "X must have records: found 0 sample(s) while a minimum of 1 is "
    "required.",
}
# Messages that hold no data: numbers of columns alone.
_HARMLESS = (
    r"X has \d+ features, but \w+ is expecting \d+ features as input\.?",
    r"Found array with dim \d+[.,] ?(while dim <= 2 is required( by \w+)?\.?|"
    r"\w+ expected <= 2\.)",
)
# How the types of dates, times and durations begin in NumPy, pandas, polars, Arrow.
_DATES = ("date", "time", "period", "duration")
_OF_DATES = "Leave them out, or pass the days since a public date."
_NAMES = "The feature names should match those that were passed during fit."
_WARNINGS = (
    r"X does not have valid feature names, but \w+ was fitted with feature names",
    r"X has feature names, but \w+ was fitted without feature names",
    r"A column-vector y was passed when a 1d array was expected\. Please change the "
    r"shape of y to \(n_samples, ?\), for example using ravel\(\)\.",
)
_UNKNOWN = (
    "X, y and groups must be readable as arrays, got what NumPy, scikit-learn or an "
    "object in them refuses. Its message may show data and is kept back. Pass arrays "
    "of numbers; labels and users may be strings."
)


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
            refusal = _refusal(error)
    if refusal is not None:  # outside of the handler, so that it has no context
        raise refusal
    for text in texts:  # that another one was raised would show something
        if any(re.fullmatch(pattern, text) for pattern in _WARNINGS):
            warnings.warn(text, _category(text), stacklevel=3)
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

    Shorter floats come from float64: one fraction would round all large integers twice.
    TypeError for dates where another type is asked for: their unit follows from all.
    """
    refuse_masked(values)
    found = without_data(np.asarray, values)
    if dtype not in (None, object):
        if found.dtype.kind in "US":  # one text makes texts of all, of other digits
            raise TypeError("values must be numbers, got text. Convert each by float.")
        if without_data(holds_dates, found):
            raise TypeError(f"values must be numbers, got dates. {_OF_DATES}")
    if dtype in (np.float16, np.float32) and found.dtype.char not in "efd":
        values = without_data(np.asarray, values, np.float64)
    return found if dtype is None else without_data(np.asarray, values, dtype)


def check_columns(**tables: Any) -> list[list[Any]]:
    """Return the names of the columns of each table; an array has none.

    TypeError for a column of dates, which would become numbers unnoticed; the message
    names it, as names are part of the public schema. Also for what `refuse_masked`
    refuses. ValueError for names that may be a record (`may_be_a_record`).
    """
    refuse_masked(*tables.values())
    names = []
    for name, table in tables.items():
        columns, dates = without_data(_columns_of, table)
        if dates is not None:
            raise TypeError(f"{name} must hold numbers, got dates{dates}. {_OF_DATES}")
        if columns and may_be_a_record(columns):
            raise ValueError(f"{name} must have names of columns, got {A_RECORD}")
        names.append(columns)
    return names


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
    values: the keys of a mapping, the columns of a table, the letters of a text.
    """
    table = without_data(getattr, values, "ndim", 1) != 1
    if table or isinstance(values, Mapping | Set | str | bytes):
        raise TypeError(
            f"{name} must be one-dimensional: a list, an array or a column, got "
            f"{type(values).__name__}. Pass one value for each record, in their order."
        )
    return without_data(lambda: list(getattr(values, "tolist", lambda: values)()))


def refuse_masked(*tables: Any) -> None:
    """Raise TypeError for masked arrays that hide an entry, or lists of such.

    NumPy and scikit-learn drop the mask, and take what is under it.
    """
    for table in tables:
        parts = table if isinstance(table, list | tuple) else [table]
        masked = (part for part in parts if isinstance(part, np.ma.MaskedArray))
        if any(map(np.ma.is_masked, masked)):
            raise TypeError(
                "X, y and groups must not be masked arrays with hidden entries, since "
                "what is under a mask would count. Leave those records out, or fill "
                "in a public constant."
            )


def _category(text: str) -> type[Warning]:
    """Return the category of a warning of `_WARNINGS`, all of which are sklearn's."""
    from sklearn.exceptions import DataConversionWarning

    return DataConversionWarning if text.startswith("A column") else UserWarning


def _refusal(error: Exception) -> Exception:
    """Return our error for one of another package."""
    if isinstance(error, MemoryError):
        return MemoryError("X and y must fit into memory. Use a feature file.")
    kind = TypeError if isinstance(error, TypeError) else ValueError
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - anything may show data
        return kind(_UNKNOWN)
    names = text.startswith(_NAMES) and type(error) is ValueError
    if names or any(re.fullmatch(pattern, text) for pattern in _HARMLESS):
        return kind(text)
    known = (sentence for phrase, sentence in _REWORDED.items() if phrase in text)
    return kind(next(known, _UNKNOWN))
