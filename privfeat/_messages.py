"""Calls of other packages on private data, whose messages may show the data.

What NumPy, scikit-learn, pandas or an object of the user raises, or warns of, may hold
values, labels, ids or counts. An error becomes one of ours, without
cause, context or notes; a warning that is not known is dropped.
"""

import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, ParamSpec, TypeVar, cast

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
_NAMES = "The feature names should match those that were passed during fit."
# Those that show no data, and are passed on.
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
            refusal = _refusal_of(error)
    if refusal is not None:  # outside of the handler, so that it has no context
        raise refusal
    for text in texts:  # that another one was raised would show something
        if any(re.fullmatch(pattern, text) for pattern in _WARNINGS):
            warnings.warn(text, _category_of(text), stacklevel=3)
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


def _category_of(text: str) -> type[Warning]:
    """Return the category of a warning of `_WARNINGS`, all of which are sklearn's."""
    from sklearn.exceptions import DataConversionWarning

    return DataConversionWarning if text.startswith("A column") else UserWarning


def _refusal_of(error: Exception) -> Exception:
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
