"""Bounds on sparse rows, against those of dense ones and against fractions."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix

from privfeat.core.bounds import sparse
from privfeat.core.bounds.grid import grid_step
from privfeat.core.bounds.rows import MAX_COLUMNS, clip_rows
from privfeat.core.bounds.sparse import canonical_rows, clip_sparse_rows, with_column

EXTREMES = [0.0, 0.0, 1.0, -1.0, 1e38, -1e300, 1.7e308, 5e-324, 1e-310, 3e-39, np.pi]
NOT_FINITE = [math.nan, math.inf, -math.inf]
entries = st.one_of(st.sampled_from(EXTREMES), st.floats(-1e3, 1e3))
settled = pytest.mark.parametrize("row_scaling", ["unit", "clip"])
constants = pytest.mark.parametrize("intercept_scaling", [None, 1e-6, 0.5, 1e6])


def arrays(elements, shape=(4, 3)):
    return hnp.arrays(np.float64, shape, elements=elements)


def made(values, columns, ends, shape):
    """Return a CSR array of these parts, without a check."""
    matrix = csr_array(shape)
    matrix.data, matrix.indices, matrix.indptr = map(np.array, (values, columns, ends))
    return matrix


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


@pytest.mark.parametrize("kind", [csr_array, csr_matrix])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float32, np.longdouble])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_canonical_rows_copies_what_it_is_given(kind, dtype, index):
    rows = np.array([[0, 1, 0], [1, 0, 1]]).astype(dtype)
    given_rows = kind(rows)
    given_rows.indices = given_rows.indices.astype(index)
    given_rows.indptr = given_rows.indptr.astype(index)
    found = canonical_rows(given_rows)
    assert isinstance(found, csr_array)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found.toarray(), rows.astype(float))
    found.data[:] = found.indices[:] = 9
    np.testing.assert_array_equal(given_rows.toarray(), rows)


def test_canonical_rows_adds_up_what_is_stored_twice_and_sorts_the_rest():
    matrix = made([1.0, 2.0, 4.0, 0.0, 8.0], [2, 0, 2, 1, 0], [0, 3, 5], (2, 3))
    matrix.has_canonical_format = matrix.has_sorted_indices = True  # a lie
    found = canonical_rows(matrix)
    assert found.has_canonical_format
    np.testing.assert_array_equal(found.toarray(), [[2.0, 0.0, 5.0], [8.0, 0.0, 0.0]])
    np.testing.assert_array_equal(matrix.indices, [2, 0, 2, 1, 0])


def test_canonical_rows_leaves_out_what_lies_behind_the_last_row():
    found = canonical_rows(made([1.0, 9.0], [1, 99], [0, 1], (1, 2)))
    np.testing.assert_array_equal(found.toarray(), [[0.0, 1.0]])


@pytest.mark.parametrize(
    ("values", "columns", "ends"),
    {
        "behind the last column": ([1.0], [3], [0, 1, 1]),
        "far away": ([1.0], [2**40], [0, 1, 1]),
        "before the first": ([1.0], [-1], [0, 1, 1]),
        "not whole": ([1.0], [0.5], [0, 1, 1]),
        "ends not whole": ([1.0], [0], [0.0, 1.0, 1.0]),
        "behind the entries": ([1.0], [0], [0, 1, 2]),
        "behind the columns": ([1.0, 1.0], [0], [0, 1, 2]),
        "falling": ([1.0, 1.0], [0, 1], [0, 2, 1]),
        "far and back to nothing": ([1.0], [0], [0, 10**9, 0]),
        "negative": ([1.0], [0], [0, -5, 1]),
        "not from the start": ([1.0, 1.0], [0, 1], [1, 1, 2]),
        "too few": ([1.0], [0], [0, 1]),
        "none": ([1.0], [0], []),
        "of two dimensions": ([[1.0]], [0], [0, 1, 1]),
    }.values(),
)
def test_canonical_rows_refuses_indices_that_point_elsewhere(values, columns, ends):
    with pytest.raises(ValueError, match="whose indices are in range, and is not"):
        canonical_rows(made(values, columns, ends, (2, 3)))


@pytest.mark.parametrize("bad", [[math.nan], [math.inf], [1e308, 1e308]])
def test_canonical_rows_refuses_what_is_not_finite(bad):
    matrix = made(bad, [1] * len(bad), [0, len(bad)], (1, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"must not contain NaN or infinity\.$"):
            canonical_rows(matrix)


def test_canonical_rows_refuses_a_number_beyond_float64():
    matrix = csr_array(np.array([[1, 0]], np.longdouble))
    matrix.data = matrix.data * np.longdouble("1e400")
    with pytest.raises(ValueError, match="must not contain NaN or infinity"):
        canonical_rows(matrix)


@pytest.mark.parametrize(
    ("matrix", "error", "text"),
    [
        (csc_array(np.eye(2)), ValueError, r"CSR format.*'csc'.*Pass X\.tocsr\(\)"),
        (coo_array(np.eye(2)), ValueError, "CSR format"),
        (csr_array(np.ones(3)), ValueError, "of 1 dimensions"),
        (csr_array(np.eye(2) * 1j), ValueError, "Complex data not supported"),
        (made(["a"], [0], [0, 1], (1, 1)), TypeError, "hold numbers"),
    ],
)
def test_canonical_rows_refuses_other_formats_and_types(matrix, error, text):
    with pytest.raises(error, match=text):
        canonical_rows(matrix)


def test_canonical_rows_shows_nothing_of_parts_that_cannot_be_read():
    matrix = csr_array((1, 1))

    class Part:
        def __array__(self, *args, **kwargs):
            raise RuntimeError("secret")

    matrix.data = Part()
    with pytest.raises(ValueError, match="must be readable as arrays") as caught:
        canonical_rows(matrix)
    assert caught.value.__context__ is None


def test_the_largest_margin_is_that_of_dense_rows():
    assert sparse.SHRINK == 1.0 - 2.0**-36


def test_canonical_rows_adds_up_a_row_whatever_the_others():
    """SciPy sorts all rows if one is not sorted, and equal columns change places."""
    values = np.append([1e17, 1.0, -1e17], np.ones(37))
    alone = made(values, np.zeros(40, int), [0, 40], (1, 3))
    other = made([*values, 5.0, 6.0], [*np.zeros(40, int), 2, 1], [0, 40, 42], (2, 3))
    assert canonical_rows(alone).toarray().tolist() == [[37.0, 0.0, 0.0]]
    found = canonical_rows(other)
    assert found.has_canonical_format
    assert found.toarray().tolist() == [[37.0, 0.0, 0.0], [0.0, 6.0, 5.0]]


@pytest.mark.parametrize("seed", range(5))
def test_canonical_rows_of_part_of_the_rows_are_part_of_them(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 60, size=8)
    ends = np.append(0, np.cumsum(counts))
    columns, values = rng.integers(0, 4, ends[-1]), rng.normal(size=ends[-1]) * 1e9
    for row in range(4):  # those of others are not sorted
        columns[ends[row] : ends[row + 1]].sort()
    whole = canonical_rows(made(values, columns, ends, (8, 4))).toarray()
    for row in range(8):
        part = slice(ends[row], ends[row + 1])
        alone = made(values[part], columns[part], [0, counts[row]], (1, 4))
        np.testing.assert_array_equal(canonical_rows(alone).toarray()[0], whole[row])
