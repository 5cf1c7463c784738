"""The seam for audits: whoever watches a fit sees each exact sum and its release."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from privfeat.core.release import Release
from privfeat.core.statistics import ExactSum

Observer = Callable[[ExactSum, Release], Release]

_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


def observed(exact: ExactSum, release: Release) -> Release:
    """Return what the fit goes on with: ``release``, unless an observer says else."""
    observer = _observer.get()
    return release if observer is None else observer(exact, release)


@contextmanager
def observe(observer: Observer) -> Iterator[None]:
    """Show ``observer`` every release of the fits inside.

    Parameters
    ----------
    observer : callable
        Takes the exact sum and the release drawn from it, and returns the release that
        the fit goes on with.

    Notes
    -----
    **Not private.** The observer sees sensitive values and may hold the noise fixed:
    no privacy statement covers what is fitted inside. For audits and tests alone.
    """
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)
