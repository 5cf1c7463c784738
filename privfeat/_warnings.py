"""What a person is told: warnings at the line of the user, and lines on stderr."""

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

from privfeat._messages import forget_hidden
from privfeat.exceptions import PrivacyWarning

_PASSED = {"privfeat", "contextlib"}


def warn(message: str, category: type[Warning] = PrivacyWarning) -> None:
    """Warn, of weaker privacy if nothing else, at the nearest line of the user."""
    forget_hidden()
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _package(frame.f_globals) in _PASSED:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Show what filters would raise as errors, of whatever package, in all threads.

    A fit that was charged must not be lost to a warning: that its code could not be
    kept on a full disk, say. Nor to what ``numpy.seterr`` would raise in this thread:
    others begin with the settings of NumPy.
    """
    import numpy as np

    scope = _Scope()
    # those of other fits stand for filters that are there as well: to repeat them would
    # double the list for each fit that runs at once
    shown = [
        ("default" if action == "error" else action, _Within(scope, text), *rest)
        for action, text, *rest in list(cast("list[Any]", warnings.filters))
        if not isinstance(text, _Within)
    ]
    cast("list[Any]", warnings.filters)[:0] = shown
    told: Any = {
        kind: "warn" if how != "ignore" and kind != "under" else "ignore"
        for kind, how in np.geterr().items()
    }
    try:
        with np.errstate(**told):
            yield
    finally:
        scope.is_open = False  # another thread may put back a copy of the filters
        filters = cast("list[Any]", warnings.filters)
        for each in list(filters):
            if isinstance(each[1], _Within) and not each[1].is_open:
                with suppress(ValueError):  # another thread was faster
                    filters.remove(each)


class _Scope:
    """How long filters are in force."""

    is_open = True


class _Within:
    """Stands for the pattern of a filter; matches what it matches, in a scope."""

    def __init__(self, scope: _Scope, text: Any) -> None:
        self._scope, self._text = scope, text

    @property
    def is_open(self) -> bool:
        return self._scope.is_open

    @property
    def pattern(self) -> str:
        """What scikit-learn hands to its jobs, as of a compiled expression."""
        if not self.is_open:
            return "(?!)"  # matches nothing
        if isinstance(self._text, str):
            return re.escape(self._text) + r"\Z"
        return "" if self._text is None else str(self._text.pattern)

    def match(self, text: str) -> bool:
        if not self.is_open:
            return False
        if isinstance(self._text, str):  # of the filters that Python starts with
            return self._text == text
        return self._text is None or bool(self._text.match(text))


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]


class _Stderr:
    """The stderr of the moment; what it does not take is dropped.

    It may be closed, on a full disk, a terminal that is gone, or a pipe that nobody
    reads (``2>&1 | head``). A fit that was charged must not be lost by that.
    """

    @property
    def encoding(self) -> str | None:
        """Of what is written; tqdm asks for it."""
        return getattr(sys.stderr, "encoding", None)

    def write(self, text: str) -> int:
        """Write a text, or not."""
        if sys.stderr is not None:  # it was not open when Python started
            with suppress(Exception):  # what stands for it may raise anything
                sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        """Hand on what was written."""
        if sys.stderr is not None:
            with suppress(Exception):
                sys.stderr.flush()

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        with suppress(Exception):
            return sys.stderr is not None and sys.stderr.isatty()
        return False


STDERR = _Stderr()
