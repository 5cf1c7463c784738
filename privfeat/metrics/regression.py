"""What is said of a regressor, from noisy sums of powers of its errors."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._checks import check_real
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.metrics.classification import Figures
from privfeat.metrics.intervals import Estimate, Width, around, number
from privfeat.metrics.tables import ERROR_FACTORS


@dataclass(frozen=True)
class RegressorEvaluation(Figures):
    """Figures of a regressor on private test records, each an `Estimate`.

    Targets and predictions are cut to public bounds before they are compared.

    Attributes
    ----------
    target_bounds : tuple of float
        Lowest and highest target.
    confidence : float
        Of each interval by itself, such as 0.95.
    n_records : Estimate
    r2 : Estimate
        R squared: 1 - mean squared error over the variance of the targets.
    mean_absolute_error, mean_squared_error : Estimate
        In units of the target, and in their squares.
    privacy : PrivacyStatement
        What all of them cost together, for the test records.
    """

    target_bounds: tuple[float, float]
    confidence: float
    n_records: Estimate
    r2: Estimate
    mean_absolute_error: Estimate
    mean_squared_error: Estimate
    privacy: PrivacyStatement


def evaluation_of_sums(
    noisy_sums: NDArray[np.float64],
    noise_stddev: float,
    target_bounds: tuple[float, float],
    confidence: float,
    cluster: int,
    privacy: PrivacyStatement,
) -> RegressorEvaluation:
    """Return what released sums of `tables.exact_errors` say, perhaps of several.

    All intervals are by the delta method: to first order in the noise of the sums, of
    known variance, and with the variance of what one record adds: at least what the
    noisy sums of squares, and a standard deviation of their noise, say. Of R squared
    that is ``d = e^2 - (1 - R^2) (t - mean)^2``, over the variance of the targets; its
    square is at most ``e^4 + (1 - R^2)^2 (t - mean)^4``.
    """
    width = Width.of(confidence, cluster)
    factors = np.array(ERROR_FACTORS)
    n, absolute, squared, fourth, t1, t2, t3, t4 = (noisy_sums / factors).tolist()
    noise = (noise_stddev / factors) ** 2
    of_n, of_absolute, of_squared, of_fourth, of_t1, of_t2, *_ = noise.tolist()
    # a standard deviation more: noise that makes them small hides what sampling does
    most_squared, most_fourth = (
        max(value, 0.0) + math.sqrt(of_value)
        for value, of_value in ((squared, of_squared), (fourth, of_fourth))
    )
    scale = target_bounds[1] - target_bounds[0]
    counted = around(n, of_n, width, 0.0, math.inf)  # without sampling
    r2 = number(math.nan, -math.inf, 1.0)
    if n <= width.z * math.sqrt(of_n):
        unknown = (number(math.nan, 0.0, scale), number(math.nan, 0.0, scale**2))
        return RegressorEvaluation(
            target_bounds, confidence, counted, r2, *unknown, privacy
        )

    def mean(total: float, noise: float, squares: float, unit: float) -> Estimate:
        value = total / n
        sampling = max(squares / n - value**2, 0.0) * cluster / n
        variance = (noise + of_n * value**2) / n**2 + sampling
        return around(value * unit, variance * unit**2, width, 0.0, unit)

    # variance of the targets: of what one record adds to it, and of the sum
    middle = t1 / n
    spread = t2 - n * middle**2
    spread_noise = of_t2 + 4.0 * middle**2 * of_t1 + middle**4 * of_n
    if spread > width.z * math.sqrt(spread_noise):
        lost = squared / spread
        fourth_moment = (
            t4 - 4.0 * middle * t3 + 6.0 * middle**2 * t2 - 3.0 * n * middle**4
        )
        of_record = np.maximum([fourth, fourth_moment], 0.0) @ [1.0, lost**2]
        variance = of_squared + lost**2 * spread_noise + cluster * of_record
        r2 = around(1.0 - lost, variance / spread**2, width, -math.inf, 1.0)
    return RegressorEvaluation(
        target_bounds,
        confidence,
        counted,
        r2,
        mean(absolute, of_absolute, most_squared, scale),
        mean(squared, of_squared, most_fourth, scale**2),
        privacy,
    )


def checked_bounds(bounds: Any) -> tuple[float, float]:
    """Return the lowest and the highest target; ValueError for others."""
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ValueError(
            "target_bounds must be (lowest, highest) target, known to everyone, for a "
            f"regressor, got {bounds!r}."
        )
    low = check_real("target_bounds[0]", bounds[0], low=-1e70, high=1e70)
    high = check_real("target_bounds[1]", bounds[1], low=-1e70, high=1e70)
    if not high - low > 1e-100:
        raise ValueError(f"target_bounds must rise, got {(low, high)!r}.")
    return low, high
