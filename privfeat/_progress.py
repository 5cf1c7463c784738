"""Progress of what takes long: bars on a terminal, at most a line a minute elsewhere.

Fits, training and extraction have this one way to show it. A fit shows phases, steps,
which are public, and per cent; never a number of records, which may be secret:

    with progress("DPFC"):
        with phase("Gram matrix"):
            for chunk in passing(chunks, len(chunks)):
                ...
        for step in steps("gradient", 100):
            ...
"""

import io
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from time import monotonic
from typing import Any, TypeVar

from tqdm import tqdm

from privfeat._warnings import STDERR

T = TypeVar("T")

SECONDS_BETWEEN_LINES = 60.0
_BAR = "{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]"
_STEPS = "{desc}: {n:.0f}/{total:.0f} steps |{bar}| [{elapsed}<{remaining}]"
LINE = "{desc}: {percentage:.0f} %, {elapsed} gone, {remaining} left"
_LINE_OF_STEPS = "{desc}: step {n:.0f} of {total:.0f}, {elapsed} gone, {remaining} left"


class Progress:
    """What one fit shows, on stderr; every bar and line begins with its ``name``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._last_line = monotonic()  # of all lines, so that quick fits have none
        self._bar: Any = None
        # of the step that runs: steps done, its passes, and which of them it is in
        self._done, self._passes, self._pass = 0, 1, 0

    def tell(self, text: str) -> None:
        """Print a line, whatever was printed before."""
        tqdm.write(f"{self.name}: {text}", file=STDERR)

    def line(self, text: str) -> None:
        """Print a line unless one was printed less than a minute ago."""
        now = monotonic()
        if now - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = now
            tqdm.write(text, file=STDERR)

    @contextmanager
    def bar(
        self, what: str, total: int, *, done: int = 0, passes: int = 1, one: bool
    ) -> Iterator[None]:
        """Show a bar of ``total`` steps, each of so many passes over the records."""
        before = self._bar, self._done, self._passes, self._pass
        formats = (_BAR, LINE) if one else (_STEPS, _LINE_OF_STEPS)
        desc = f"{self.name}, {what}"
        with make_bar(
            self, *formats, leave=not one, desc=desc, total=total, initial=done
        ) as bar:
            self._bar, self._done, self._passes, self._pass = bar, done, passes, 0
            try:
                yield
            finally:
                self._bar, self._done, self._passes, self._pass = before

    def steps(self, what: str, n: int, *, done: int, passes: int) -> Iterator[int]:
        """Yield the numbers of steps; each moves the bar when it ends."""
        with self.bar(what, n, done=done, passes=passes, one=False):
            for step in range(done, n):
                yield step
                self._done, self._pass = self._done + 1, 0
                self._move_to(self._done)

    def passing(self, items: Iterable[T], n: int) -> Iterator[T]:
        """Yield the ``n`` items of a pass, and move the bar by their part of a step."""
        start = self._done + min(self._pass, self._passes - 1) / self._passes
        known = self._pass < self._passes  # a pass more than there were to be
        for number, item in enumerate(items, 1):
            yield item
            if known:
                self._move_to(start + number / (n * self._passes))
        self._pass += 1

    def _move_to(self, place: float) -> None:
        if self._bar is not None:
            self._bar.update(min(place, self._bar.total) - self._bar.n)


def make_bar(
    progress: Progress, bar_format: str | None, line_format: str, **options: Any
) -> Any:
    """Return a bar of tqdm, or what prints lines in its place."""
    if "ipykernel" in sys.modules:
        from tqdm.auto import tqdm as notebook_bar

        # without widgets it writes text, which must not end a fit either
        return notebook_bar(bar_format=bar_format, file=STDERR, **options)
    if STDERR.isatty():
        # on terminals that do not say how large they are tqdm would show nothing
        columns, rows = shutil.get_terminal_size()
        options |= {"ncols": columns, "nrows": rows, "file": STDERR}
        return tqdm(bar_format=bar_format, **options)
    return _Lines(progress, bar_format=line_format, **options)


class _Lines(tqdm):  # type: ignore[misc]  # tqdm has no types
    """A bar that prints lines, through a `Progress` that counts the minutes."""

    def __init__(self, progress: Progress, **options: Any) -> None:
        self._progress = progress
        # what tqdm writes by itself moves a cursor
        super().__init__(file=io.StringIO(), mininterval=0.1, miniters=0, **options)

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Print what the bar says, if it is time; tqdm calls this to draw it."""
        if msg != "":  # to clear the bar
            self._progress.line(str(self))


_shown: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def progress(name: str) -> Iterator[Progress]:
    """Show what the body does under a name."""
    found = Progress(name)
    with _showing(found):
        yield found


def hidden() -> AbstractContextManager[None]:
    """Show nothing of what the body does."""
    return nullcontext() if _shown.get() is None else _showing(None)


@contextmanager
def _showing(found: Progress | None) -> Iterator[None]:
    token = _shown.set(found)
    try:
        yield
    finally:
        _shown.reset(token)


def phase(what: str) -> AbstractContextManager[None]:
    """Show a part of a fit that takes a pass over the records."""
    found = _shown.get()
    return found.bar(what, 1, one=True) if found else nullcontext()


def steps(what: str, n: int, *, done: int = 0, passes: int = 1) -> Iterable[int]:
    """Return the numbers of steps, ``done`` of which were taken, behind a bar."""
    found = _shown.get()
    if found is None:
        return range(done, n)
    return found.steps(what, n, done=done, passes=passes)


def passing(items: Iterable[T], n: int) -> Iterable[T]:
    """Return the ``n`` items of a pass over the records, which moves the bar."""
    found = _shown.get()
    return items if found is None else found.passing(items, n)
