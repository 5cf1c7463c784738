"""Whole rows in units of the grid, and their sums, for tests of statistics."""

import numpy as np
from hypothesis import strategies as st

from privfeat.core.bounds.grid import grid_step
from privfeat.core.sums.statistics import exact_class_grams, exact_curvature_grams

STEP = grid_step(1.0)
LIMIT = 2**20
integers = st.one_of(
    st.sampled_from([0, 1, -1, LIMIT, -LIMIT, LIMIT - 1]),
    st.integers(-LIMIT, LIMIT),
)


def python_gram(rows):
    whole = rows.astype(int).astype(object)
    return whole.T @ whole


def python_class_sums(rows, labels, n_outputs):
    whole = rows.astype(int).astype(object)
    return np.array([(labels == j) @ whole for j in range(n_outputs)])


def bounded(n_rows, size, seed=0):
    """Whole rows of norm at most 1 in units of the grid step."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, size))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= rng.uniform(0.2, 1.0, size=(n_rows, 1))
    return np.trunc(rows * LIMIT), rng.integers(0, 3, n_rows)


def class_gram_stack(rows, n_outputs):
    return np.array([gram.value for gram in exact_class_grams(rows, n_outputs)])


def curvature_stack(rows, coef, loss):
    return np.array([s.value for s in exact_curvature_grams(rows, coef, loss=loss)])
