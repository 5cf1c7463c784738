"""The grids that values are cut to, so that sums of their products are exact."""

import math

import numpy as np
from jaxtyping import Float, Float64

GRID_BITS = 20
COEF_BITS = 32
# Of the norms to which anything is clipped.
CLIP_RANGE = (1e-6, 1e6)
# The margins of the bounds cover the rounding of shorter rows.
MAX_COLUMNS = 200_000


def check_width(n_features: int) -> None:
    """Raise ValueError for rows that are longer than the margins of bounds cover."""
    if n_features >= MAX_COLUMNS:
        raise ValueError(
            f"X must have fewer than {MAX_COLUMNS} columns, got {n_features}: the "
            "margin of the bounds covers no more. Pass fewer features; of hashed ones "
            "2**17, say."
        )


def grid_step(bound: float) -> float:
    """Return the smallest power of two ``s`` for which ``bound <= 2**20 s``.

    Examples
    --------
    >>> grid_step(1.0) == 2.0**-20, grid_step(1.5) == 2.0**-19
    (True, True)
    """
    mantissa, exponent = math.frexp(bound)
    if mantissa == 0.5:
        exponent -= 1
    return math.ldexp(1.0, exponent - GRID_BITS)


def whole_coef(
    coef: Float[np.ndarray, "m c"], private: bool
) -> tuple[Float64[np.ndarray, "m c"], float]:
    """Return coefficients as whole numbers, with the step of their grid.

    Their rows have norm at most 2**32, so products with rows of norm 2**20 have partial
    sums of at most 2**52, by Cauchy and Schwarz: scores are exact. One that is not
    finite makes all of them NaN. Those whose squares underflow stay as they are:
    their scores, below 2**-500, are 0 in float32.
    """
    largest = float(np.max(np.linalg.norm(coef, axis=1), initial=0.0))
    if not private or largest == 0.0:
        return coef, 1.0
    if not math.isfinite(largest):
        return np.full_like(coef, np.nan), 1.0
    step = math.ldexp(1.0, math.frexp(largest)[1] - COEF_BITS)
    return np.trunc(coef / step), step
