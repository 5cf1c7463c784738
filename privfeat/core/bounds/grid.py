"""The grid that bounded values are cut to, so that sums of them are exact."""

import math

GRID_BITS = 20
# Of the norms to which anything is clipped.
CLIP_RANGE = (1e-6, 1e6)


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
