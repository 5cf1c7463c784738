"""Numbers that are hard to bound, and the norm of whole numbers by integers."""

import math

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

EXTREMES = [0.0, 1.0, -1.0, 1e38, -1e300, 1.7e308, 5e-324, 1e-310, 3e-39, np.pi]
NOT_FINITE = [math.nan, math.inf, -math.inf]
entries = st.one_of(st.sampled_from(EXTREMES), st.floats(-1e3, 1e3))


def arrays(elements, shape=(4, 3)):
    return hnp.arrays(np.float64, shape, elements=elements)


def exact_norm_squared(row):
    return sum(int(entry) ** 2 for entry in row)
