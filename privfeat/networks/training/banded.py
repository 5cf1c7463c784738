"""Which strategy correlated noise follows. Nothing here decides what a fit costs.

Steps of plain SGD add up: after step ``t`` parameters have the noise of the first ``t``
releases, ``A C^-1 z`` for the matrix ``A`` of prefix sums. A strategy is chosen by the
mean over steps of its variance ([1]_). More bands take more of the noise back, but a
record has a turn in every ``b``-th step alone: sampling, ``b`` times as likely there,
protects less, and ``z`` is larger. So the best number depends on the budget; where
batches are large and epsilon is small it is one, which is independent noise.

References
----------
.. [1] Choquette-Choo et al. (Amplified) Banded Matrix Factorization: A unified approach
   to private training. NeurIPS 2023 (arXiv:2306.08153), and McKenna, Scaling up the
   Banded Matrix Factorization Mechanism, 2024 (arXiv:2405.15913), for Toeplitz ones.
"""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfeat._types import Adjacency
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds.strategy import Banded

Noise = Literal["independent", "banded"]
_TRIED = (1, 2, 4, 8, 16, 32)
# Coefficients for more steps are those for so many, to a part in a hundred of error.
_STEPS = 2**13
_STEEPEST, _FLATTEST = 1e-2, 1.0 - 1e-6


def banded(
    query: Query,
    bands: int | None,
    *,
    epsilon: float | None,
    noise_multiplier: float | None,
    delta: float,
    adjacency: Adjacency,
) -> Query:
    """Return a query with correlated noise, for these parameters of `plan_releases`.

    ``query`` has independent noise. Without ``bands`` it gets the number, up to 32, of
    the least error at this epsilon. ValueError if a number does not fit (`with_bands`),
    or is to be chosen for a noise multiplier, at which more bands have less error and
    cost more.
    """
    if epsilon == math.inf:
        return query  # there is no noise
    if bands is not None:
        return with_bands(query, bands)
    if noise_multiplier is not None:
        raise ValueError(
            "bands must be given with noise_multiplier, got None. Pass the number, or "
            "epsilon."
        )
    return _with_best_bands(query, epsilon, delta, adjacency)


def with_bands(query: Query, bands: int) -> Query:
    """Return a query of which each record has a turn in every ``bands``-th release.

    The expected number of records in a release stays what it was. 1 changes nothing.
    ValueError if a turn would need more records than there are, or there is no second
    one.
    """
    if bands == 1:
        return query
    prob = query.sampling_prob * bands
    if not (prob <= 1.0 and bands <= query.count):
        raise ValueError(
            "bands must be at most the number of records, or of users, over "
            f"expected_batch_size, and at most the number of steps, got {bands!r}. "
            "Lower it, or expected_batch_size."
        )
    strategy = Banded(best_coefficients(bands, min(query.count, _STEPS)))
    return replace(query, sampling_prob=prob, strategy=strategy)


def _with_best_bands(
    query: Query, epsilon: float | None, delta: float, adjacency: Adjacency
) -> Query:
    """Return the query with the number of bands, up to 32, of the least error.

    The noise of each is found by Rényi divergences, in a second.
    """

    def error(candidate: Query) -> float:
        plan = plan_releases(
            [candidate],
            epsilon=epsilon,
            delta=delta,
            accounting="rdp",
            adjacency=adjacency,
        )
        how, n = candidate.strategy, candidate.count
        coefficients = (1.0,) if how is None else how.coefficients
        noise = plan.releases[0].noise_multiplier
        return noise * math.sqrt(mean_squared_error(coefficients, n))

    tried = [
        with_bands(query, bands)
        for bands in _TRIED
        if bands * query.sampling_prob <= 1.0 and bands <= query.count
    ]
    return min(tried, key=error)


def mean_squared_error(coefficients: ArrayLike, n_steps: int) -> float:
    """Return the mean over steps of the variance of prefix sums, for ``z`` of stddev 1.

    >>> mean_squared_error([1.0], 3)
    2.0
    """
    from scipy.signal import lfilter

    sums = lfilter([1.0], np.asarray(coefficients, np.float64), np.ones(n_steps))
    return float(np.mean(np.cumsum(sums**2)))


@lru_cache
def best_coefficients(bands: int, n_steps: int) -> tuple[float, ...]:
    """Return falling coefficients of squares that sum to 1, of the least error.

    jax-privacy's ``optimize_banded_toeplitz`` finds the same, in seconds of compilation
    for each number of bands; a search over the ratios of neighbours, which keeps them
    falling, takes a tenth of one.
    """
    from scipy.optimize import minimize

    def coefficients(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
        found = np.cumprod(np.concatenate([[1.0], ratios]))
        return np.asarray(found / np.linalg.norm(found) * (1.0 - 2.0**-48))

    def loss(ratios: NDArray[np.float64]) -> float:
        return math.log(mean_squared_error(coefficients(ratios), n_steps))

    places = np.arange(1, bands)
    found = minimize(
        loss,
        (2.0 * places - 1.0) / (2.0 * places),  # the best for as many bands as steps
        bounds=[(_STEEPEST, _FLATTEST)] * (bands - 1),
        method="L-BFGS-B",
    )
    return tuple(coefficients(found.x).tolist())
