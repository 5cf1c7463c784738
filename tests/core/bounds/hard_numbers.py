"""Numbers that are hard to bound, and the norm of whole numbers by integers."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array

from privfeat.core.bounds.grid import grid_step

EXTREMES = [0.0, 1.0, -1.0, 1e38, -1e300, 1.7e308, 5e-324, 1e-310, 3e-39, np.pi]
NOT_FINITE = [math.nan, math.inf, -math.inf]
entries = st.one_of(st.sampled_from(EXTREMES), st.floats(-1e3, 1e3))


def arrays(elements, shape=(4, 3)):
    return hnp.arrays(np.float64, shape, elements=elements)


def exact_norm_squared(row):
    return sum(int(entry) ** 2 for entry in row)


def as_type(features, dtype):
    """Return numbers that a user's low-precision file may hold, as float64.

    What overflows becomes infinite.
    """
    with np.errstate(over="ignore", under="ignore"):
        return features.astype(dtype).astype(np.float64)


def assert_bounded(rows, clip_norm):
    """Whole numbers of at most 20 bits whose norm is at most ``clip_norm``, exactly."""
    rows = np.asarray(rows)
    assert rows.dtype == np.float32
    assert np.all(rows == np.trunc(rows))
    assert np.all(np.abs(rows) <= 2**20)
    limit = (Fraction(clip_norm) / Fraction(grid_step(clip_norm))) ** 2
    assert all(exact_norm_squared(row) <= limit for row in rows)


def made(values, columns, ends, shape):
    """Return a CSR array of these parts, without a check."""
    matrix = csr_array(shape)
    matrix.data, matrix.indices, matrix.indptr = map(np.array, (values, columns, ends))
    return matrix
