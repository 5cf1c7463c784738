"""Randomness of audits: it protects nothing, so a generator of NumPy will do."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from numpy.random import Generator, default_rng  # noqa: TID251

from privfeat.exceptions import PrivacyWarning

__all__ = ["Generator", "make_rng", "seed_from", "without_privacy_warnings"]


def make_rng(seed: int | None) -> Generator:
    """Return a generator; None takes entropy from the operating system."""
    return default_rng(seed)


def seed_from(rng: Generator) -> int:
    """Return a seed for a fit that is thrown away."""
    return int(rng.integers(2**63))


@contextmanager
def without_privacy_warnings() -> Iterator[None]:
    """Silence warnings that mean nothing to a fit that is never published."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        yield
