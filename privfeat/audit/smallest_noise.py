"""The smallest noise at which a fit does not learn what it must not."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from privfeat._checks import check_between, check_positive
from privfeat.audit.sanity import SanityResult


@dataclass(frozen=True)
class SmallestNoise:
    """The smallest noise that passed, and all that was tried, in order."""

    noise_multiplier: float
    tried: tuple[tuple[float, SanityResult], ...]


def smallest_noise(
    make: Callable[[float], Any],
    test: Callable[[Any], SanityResult],
    *,
    low: float = 0.1,
    high: float = 1000.0,
    tol: float = 0.1,
) -> SmallestNoise:
    """Return the smallest noise multiplier that passes a test, by bisection.

    Parameters
    ----------
    make : callable
        Takes a noise multiplier; returns an unfitted estimator.
    test : callable
        Takes that; returns a `SanityResult`.
    low, high : float
        Where to search; ``0 < low < high``.
    tol : float
        Relative precision, > 0.

    Raises
    ------
    ValueError
        If the test fails at ``high`` too, or a number is out of range.

    Notes
    -----
    The tests make their own data, so the result costs no privacy, and holds for data of
    that size alone. Pass a test with a fixed seed, which compares noise levels on the
    same data, and with ``mu=0``: by default a correct fit passes at any noise.

    Examples
    --------
    >>> from functools import partial
    >>> from privfeat import DPLeastSquares
    >>> from privfeat.audit import random_label_test
    >>> test = partial(random_label_test, n_features=30, n_fits=1, mu=0.0, seed=0)
    >>> found = smallest_noise(lambda s: DPLeastSquares(noise_multiplier=s), test)
    >>> 0.1 <= found.noise_multiplier <= 1000
    True
    """
    check_positive("low", low)
    check_between("high", high, low, math.inf)
    check_positive("tol", tol)
    tried = []

    def passes(noise_multiplier: float) -> bool:
        result = test(make(noise_multiplier))
        tried.append((noise_multiplier, result))
        return result.passed

    if passes(low):
        return SmallestNoise(low, tuple(tried))
    if not passes(high):
        raise ValueError(
            f"high must be a noise multiplier that passes, got {high!r}. Pass a "
            "larger one."
        )
    while high / low > 1.0 + tol:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if passes(middle) else (middle, high)
    return SmallestNoise(high, tuple(tried))
