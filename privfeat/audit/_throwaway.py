"""Fits of audits are thrown away: their randomness and their budget protect nothing."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numpy.random import Generator, default_rng  # noqa: TID251
from sklearn.base import clone

from privfeat.exceptions import PrivacyWarning

__all__ = [
    "Generator",
    "make_rng",
    "seed_from",
    "throw_away",
    "without_privacy_warnings",
]


def make_rng(seed: int | None) -> Generator:
    """Return a generator; None takes entropy from the operating system."""
    return default_rng(seed)


def seed_from(rng: Generator) -> int:
    """Return a seed for a fit that is thrown away."""
    return int(rng.integers(2**63))


def throw_away(estimator: Any, **params: Any) -> Any:
    """Return a clone that charges no ledger and keeps no checkpoint, with ``params``.

    Where an estimator has no such parameter, it is not set.
    """
    model = clone(estimator, safe=False)
    params = {"ledger": None, "checkpoint_dir": None} | params
    for name, value in params.items():
        if hasattr(model, name):
            setattr(model, name, value)
    return model


@contextmanager
def without_privacy_warnings() -> Iterator[None]:
    """Silence warnings that mean nothing to a fit that is never published."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        yield
