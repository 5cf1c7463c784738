"""What is believed of a number after a noisy one is seen."""

import math

import numpy as np
from jaxtyping import Float

Vector = Float[np.ndarray, " q"]


def hidden(most: float) -> float:
    """Return the mean of a number, of any order of magnitude, from 1 to ``most``."""
    return most / math.log(most) if most > math.e else 1.0


def belief(
    grid: Vector, chances: Vector, value: float, error: float, scale: float | Vector
) -> float:
    """Return the mean of what is on a grid, after ``value`` is seen.

    ``value`` is normal with mean ``scale * grid``, or ``scale`` where that is an array.
    """
    means = scale if isinstance(scale, np.ndarray) else scale * grid
    near = means[np.argmin(np.abs(means - value))]
    with np.errstate(over="ignore"):
        far = (means - near) * (means + near - 2.0 * value) / max(error, 1e-150) ** 2
    chances = chances * np.exp(-0.5 * np.minimum(far, 1500.0))
    return float(chances @ grid / np.sum(chances))
