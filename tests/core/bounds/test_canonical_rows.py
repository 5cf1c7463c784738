"""Sparse rows as they are handed over: copied, sorted, added up, or refused."""

import math
import warnings

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix

from privfeat.core.bounds.sparse import canonical_rows
from tests.core.bounds.hard_numbers import made


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
