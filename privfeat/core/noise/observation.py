"""The seams for audits: who sees each exact sum and its release, and who is absent."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from jaxtyping import Bool

from privfeat.core.noise.release import Release
from privfeat.core.sums.totals import ExactSum

Observer = Callable[[ExactSum, Release], Release]
Sampler = Callable[[int], Bool[np.ndarray, " n"]]

_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)
_absent: ContextVar[Bool[np.ndarray, " n"] | None] = ContextVar("absent", default=None)


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


def present(sampler: Sampler | None) -> Sampler | None:
    """Return ``sampler`` (None for all records) without those that are `absent`."""
    missing = _absent.get()
    if missing is None:
        return sampler
    return lambda n: (True if sampler is None else sampler(n)) & ~missing


@contextmanager
def absent(records: Bool[np.ndarray, " n"]) -> Iterator[None]:
    """Leave the marked records out of every sample of the fits inside.

    The neighbour of a data set whose number of records is public: all else, the coins
    of other records included, is as if they were there. For audits and tests alone.

    Parameters
    ----------
    records : array of shape (n_samples,)
        Of the one data set that is fitted inside, sampled as a whole.
    """
    token = _absent.set(np.array(records, bool))
    try:
        yield
    finally:
        _absent.reset(token)
