"""Random numbers that protect nothing, for audits and measurements."""

from numpy.random import Generator, default_rng  # noqa: TID251

__all__ = ["Generator", "make_rng", "seed_from"]


def make_rng(seed: int | None) -> Generator:
    """Return a generator; None takes entropy from the operating system."""
    return default_rng(seed)


def seed_from(rng: Generator) -> int:
    """Return a seed for a fit that is thrown away."""
    return int(rng.integers(2**63))
