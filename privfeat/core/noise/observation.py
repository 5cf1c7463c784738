"""What audits may do to a fit: see its exact sums, change releases, leave records out.

Nothing here is used by a fit of a user, but for the names of its steps.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from jaxtyping import Bool

from privfeat.core.noise.release import Release
from privfeat.core.sums.totals import ExactSum

Observer = Callable[[ExactSum, Release], Release]
Sampler = Callable[[int], Bool[np.ndarray, " n"]]

OBSERVER: ContextVar[Observer | None] = ContextVar("observer", default=None)
_step: ContextVar[str] = ContextVar("step", default="")
_left_out: ContextVar[Bool[np.ndarray, " n"] | None] = ContextVar(
    "left_out", default=None
)


@contextmanager
def observe(observer: Observer) -> Iterator[None]:
    """Show ``observer`` every exact sum and its release in the fits inside.

    The fits go on with the release that it returns. **Not private:** the observer sees
    sensitive values and may hold the noise fixed, so no privacy statement covers what
    is fitted inside. For audits and tests alone.
    """
    token = OBSERVER.set(observer)
    try:
        yield
    finally:
        OBSERVER.reset(token)


@contextmanager
def in_step(name: str) -> Iterator[None]:
    """Say that the fits inside are of this step, for names that audits compare."""
    token = _step.set(f"{_step.get()}{name}.")
    try:
        yield
    finally:
        _step.reset(token)


def stated_name(name: str) -> str:
    """Return what a statement calls a release of this name: ``STEP.NAME`` in a step."""
    return f"{_step.get()}{name}"


def not_left_out(sampler: Sampler | None) -> Sampler | None:
    """Return a sampler of the records that `leave_out` does not name.

    None, given or returned, is the sampler that takes all records.
    """
    records = _left_out.get()
    if records is None:
        return sampler
    return lambda n: (True if sampler is None else sampler(n)) & ~records


@contextmanager
def leave_out(records: Bool[np.ndarray, " n"]) -> Iterator[None]:
    """Leave the marked records out of every sample of the fits inside.

    ``records`` has an entry for each record of the one data set that is fitted inside.
    All else, the coins of other records included, is as if none were left out: this
    makes a neighbour of the data set. For audits and tests alone.
    """
    token = _left_out.set(np.array(records, bool))
    try:
        yield
    finally:
        _left_out.reset(token)
