"""Bounds on sparse rows, against those of dense ones and against fractions."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array

from privfeat.core.bounds import sparse
from privfeat.core.bounds.grid import MAX_COLUMNS, grid_step
from privfeat.core.bounds.rows import clip_rows
from privfeat.core.bounds.sparse import clip_sparse_rows, with_column
from tests.core.bounds.hard_numbers import made

EXTREMES = [0.0, 0.0, 1.0, -1.0, 1e38, -1e300, 1.7e308, 5e-324, 1e-310, 3e-39, np.pi]
NOT_FINITE = [math.nan, math.inf, -math.inf]
entries = st.one_of(st.sampled_from(EXTREMES), st.floats(-1e3, 1e3))
settled = pytest.mark.parametrize("row_scaling", ["unit", "clip"])
constants = pytest.mark.parametrize("intercept_scaling", [None, 1e-6, 0.5, 1e6])


def arrays(elements, shape=(4, 3)):
    return hnp.arrays(np.float64, shape, elements=elements)


@settings(max_examples=40)
@pytest.mark.parametrize("clip_norm", [1e-6, 0.3, 1.0, 1e6])
@settled
@constants
@given(features=arrays(st.one_of(entries, st.sampled_from(NOT_FINITE))))
def test_clip_sparse_rows_bounds_every_row(
    clip_norm, row_scaling, intercept_scaling, features
):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = clip_sparse_rows(
            csr_array(features),
            clip_norm=clip_norm,
            row_scaling=row_scaling,
            intercept_scaling=intercept_scaling,
        ).toarray()
    assert rows.dtype == np.float64
    assert np.all(rows == np.trunc(rows))
    assert np.all(np.abs(rows) <= 2**20)
    limit = (Fraction(clip_norm) / Fraction(grid_step(clip_norm))) ** 2
    assert all(sum(int(entry) ** 2 for entry in row) <= limit for row in rows)
    lost = ~np.all(np.isfinite(features), axis=1)
    assert np.all(rows[lost] == 0.0)


@settings(max_examples=30)
@settled
@constants
@given(features=arrays(st.one_of(entries, st.sampled_from(NOT_FINITE))))
def test_clip_sparse_rows_is_the_clip_of_dense_rows(
    row_scaling, intercept_scaling, features
):
    """Up to the last bit of a norm, which may move an entry by one of the grid.

    Compiled code takes numbers that cannot be inverted for zero.
    """
    features[np.isfinite(features) & (np.abs(features) > 1e300)] = 7.0
    features[np.abs(features) < 1e-290] = 0.0
    options = {
        "clip_norm": 0.7,
        "row_scaling": row_scaling,
        "intercept_scaling": intercept_scaling,
    }
    found = clip_sparse_rows(csr_array(features), **options).toarray()
    expected = np.asarray(clip_rows(features, **options).rows, np.float64)
    assert np.max(np.abs(found - expected)) <= 1.0


@settled
def test_clip_sparse_rows_bounds_long_rows(row_scaling):
    rows = np.ones((3, 20_000))  # all entries equal: rounding errors add up
    rows[1] = np.random.default_rng(0).normal(size=20_000) * 100.0
    rows[2] = np.pi
    found = clip_sparse_rows(csr_array(rows), clip_norm=1.0, row_scaling=row_scaling)
    whole = found.toarray().astype(int).astype(object)
    assert all(row @ row <= 2**40 for row in whole)
    assert all(row @ row > 2**39 for row in whole)


@settings(max_examples=60)
@settled
@pytest.mark.parametrize("intercept_scaling", [None, 0.5])
@given(
    features=arrays(entries),
    others=arrays(st.one_of(entries, st.sampled_from(NOT_FINITE))),
    place=st.integers(0, 3),
)
def test_clip_sparse_rows_treats_each_row_alone(
    row_scaling, intercept_scaling, features, others, place
):
    options = {
        "clip_norm": 1.0,
        "row_scaling": row_scaling,
        "intercept_scaling": intercept_scaling,
    }
    others[place] = features[0]
    alone = clip_sparse_rows(csr_array(features), **options).toarray()[0]
    among = clip_sparse_rows(csr_array(others), **options).toarray()[place]
    np.testing.assert_array_equal(alone, among)


@settled
def test_clip_sparse_rows_takes_no_rows_and_empty_rows(row_scaling):
    options = {"clip_norm": 1.0, "row_scaling": row_scaling, "intercept_scaling": 0.5}
    assert clip_sparse_rows(csr_array((0, 3)), **options).shape == (0, 4)
    rows = clip_sparse_rows(csr_array((5, 3)), **options).toarray()
    expected = clip_rows(np.zeros((5, 3)), **options).rows
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("intercept_scaling", [None, 0.1])
@settled
def test_clip_sparse_rows_takes_a_row_for_zero_where_clip_rows_does(
    row_scaling, intercept_scaling
):
    options = {"clip_norm": 1.0, "row_scaling": row_scaling}
    options["intercept_scaling"] = intercept_scaling
    lengths = [5e-324, 1e-310, 2.0**-993, 2.0**-992, 2.0**-991, 1e-200]
    rows = np.outer(lengths, [1.0, 0.0])
    expected = np.asarray(clip_rows(rows, **options).rows)
    found = clip_sparse_rows(csr_array(rows), **options).toarray()
    np.testing.assert_array_equal(found != 0.0, expected != 0.0)
    assert np.max(np.abs(found - expected)) <= 1.0


def test_clip_sparse_rows_refuses_a_coordinate_that_is_stored_twice():
    """Its norm would be that of the sum, and the bound that of the parts."""
    twice = made([3.0, 3.0], [1, 1], [0, 2], (1, 3))
    with pytest.raises(ValueError, match="store each coordinate once"):
        clip_sparse_rows(twice, clip_norm=1.0, row_scaling="clip")


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"clip_norm": 1e7}, ValueError, "clip_norm must be"),
        ({"clip_norm": math.nan}, ValueError, "clip_norm must be"),
        ({"clip_norm": 1e-7}, ValueError, "clip_norm must be"),
        ({"row_scaling": "none"}, ValueError, "row_scaling must be"),
        ({"intercept_scaling": 0.0}, ValueError, "intercept_scaling must be"),
        ({"intercept_scaling": 1e7}, ValueError, "intercept_scaling must be"),
        ({"intercept_scaling": "1"}, TypeError, "intercept_scaling must be"),
    ],
)
def test_clip_sparse_rows_refuses_a_wrong_parameter(options, error, text):
    options = {"clip_norm": 1.0, "row_scaling": "unit", **options}
    with pytest.raises(error, match=text):
        clip_sparse_rows(csr_array((1, 2)), **options)


def test_clip_sparse_rows_refuses_more_columns_than_its_margin_covers():
    options = {"clip_norm": 1.0, "row_scaling": "unit"}
    clip_sparse_rows(csr_array((1, MAX_COLUMNS - 1)), **options)
    with pytest.raises(ValueError, match="fewer than 200000 columns, got 200000"):
        clip_sparse_rows(csr_array((1, MAX_COLUMNS)), **options)


def test_with_column_appends_one_entry_to_each_row():
    rows = np.array([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]])
    found = with_column(csr_array(rows), np.array([7.0, 8.0, 9.0]))
    assert found.has_canonical_format
    np.testing.assert_array_equal(found.toarray(), np.c_[rows, [7.0, 8.0, 9.0]])


def test_the_largest_margin_is_that_of_dense_rows():
    assert sparse.SHRINK == 1.0 - 2.0**-36
