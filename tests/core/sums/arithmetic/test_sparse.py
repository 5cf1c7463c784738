"""Sums over sparse rows: those of whole numbers in Python, and of dense rows."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array

from privfeat.core.sums.arithmetic.weighted import WeightedRows
from privfeat.core.sums.records import CHUNK_ROWS, SparseChunk
from privfeat.core.sums.statistics import (
    exact_class_grams,
    exact_class_sums,
    exact_gradient,
    exact_gram,
)
from tests.core.grids import (
    LIMIT,
    STEP,
    bounded,
    integers,
    python_class_sums,
    python_gram,
)


class SparseGridRows:
    """Rows that are whole numbers already; ``chunk_rows`` of them to a chunk."""

    sparse, users = True, None

    def __init__(self, rows, labels, *, step, chunk_rows=CHUNK_ROWS, private=True):
        self.step, self.n_columns = step if private else None, rows.shape[1]
        rows = np.asarray(rows, np.float64)
        self._rows, self._unit = rows if private else rows * step, step
        self._labels = labels if labels.ndim == 2 else labels[:, None]
        self._chunk_rows = chunk_rows

    def chunks(self):
        for start in range(0, len(self._rows), self._chunk_rows):
            part = slice(start, start + self._chunk_rows)
            padding = ((0, CHUNK_ROWS - len(self._rows[part])), (0, 0))
            rows = np.pad(self._rows[part], padding)
            labels = np.pad(self._labels[part], padding, constant_values=-1)
            norms = np.linalg.norm(rows, axis=1) * (self.step or 1.0)
            yield SparseChunk(csr_array(rows), norms, labels.astype(np.int32))


@settings(max_examples=30)
@given(
    rows=hnp.arrays(np.int64, (7, 3), elements=integers),
    labels=hnp.arrays(np.int64, (7, 2), elements=st.integers(-1, 3)),
)
def test_sums_of_sparse_rows_equal_whole_number_arithmetic(rows, labels):
    """A label that is named twice counts once, and one that is none does not."""
    made = SparseGridRows(rows, labels, step=STEP)
    carried = [(labels == label).any(axis=1) for label in range(3)]
    whole = rows.astype(object)
    expected = np.array([own @ whole for own in carried]).astype(float) * STEP
    np.testing.assert_array_equal(exact_class_sums(made, 3).value, expected)
    expected = python_gram(rows).astype(float) * STEP**2
    np.testing.assert_array_equal(exact_gram(made).value, expected)
    for own, gram in zip(carried, exact_class_grams(made, 3), strict=True):
        expected = python_gram(rows[own]).astype(float) * STEP**2
        np.testing.assert_array_equal(gram.value, expected)


def test_class_sums_are_exact_at_the_largest_chunk():
    rows = np.full((3 * CHUNK_ROWS, 2), LIMIT) - np.array([[0, 1]])
    labels = np.zeros(len(rows), int)
    found = exact_class_sums(SparseGridRows(rows, labels, step=1.0), 1)
    expected = python_class_sums(rows, labels, 1)
    np.testing.assert_array_equal(found.total, expected.astype(np.int64))


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
def test_the_gradient_is_that_of_dense_rows(grid_rows, loss, private):
    """Of the same whole numbers: the scores are exact, whatever is not stored."""
    rows, labels = bounded(1500, 5)
    rows[np.random.default_rng(3).random(rows.shape) < 0.6] = 0.0
    coef = np.random.default_rng(1).normal(size=(3, 5)) * 4.0
    options = {"step": STEP, "private": private}
    found, expected = (
        exact_gradient(kind(rows, labels, **options), coef, loss=loss, clip_norm=0.3)
        for kind in (SparseGridRows, grid_rows)
    )
    # softmax compiled into another program may differ in the last bit of a float32
    atol = 1e-3 if private else 1e-2
    np.testing.assert_allclose(found.value, expected.value, atol=atol)
    assert np.abs(expected.value).max() > 5.0


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=hnp.arrays(np.int64, (4, 3), elements=integers),
    coef=hnp.arrays(np.float64, (2, 3), elements=st.floats(-1e9, 1e9)),
)
@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
def test_a_gradient_of_one_record_is_bounded(loss, rows, coef):
    norms = np.sqrt((rows.astype(float) ** 2).sum(axis=1))
    rows = np.trunc(rows / np.maximum(norms / (LIMIT * (1 - 1e-9)), 1.0)[:, None])
    for row in rows.astype(int):
        made = SparseGridRows(row[None], np.array([1]), step=STEP)
        found = exact_gradient(made, coef, loss=loss, clip_norm=0.25)
        whole = found.total.astype(object)
        assert int(np.sum(whole**2)) <= (0.25 / found.grid_step) ** 2


@pytest.mark.parametrize("n_rows", [1, 1023, 1024])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
def test_one_record_moves_a_sum_by_exactly_its_contribution(loss, n_rows):
    """Also one that pushes all others to the next place, or needs a new chunk."""
    rows, labels = bounded(n_rows + 1, 5, seed=n_rows)
    rows[:, 1:][np.random.default_rng(3).random((n_rows + 1, 4)) < 0.6] = 0.0
    coef = np.random.default_rng(1).normal(size=(3, 5)) * 4.0

    def sums(part):
        made = SparseGridRows(rows[part], labels[part], step=STEP)
        yield exact_gram(made).value
        yield exact_class_sums(made, 3).value
        yield exact_gradient(made, coef, loss=loss, clip_norm=0.3).value

    for alone, without, together in zip(
        sums(slice(0, 1)), sums(slice(1, None)), sums(slice(None)), strict=True
    ):
        np.testing.assert_array_equal(alone + without, together)


@pytest.mark.parametrize("chunk_rows", [7, 500])
def test_sums_do_not_depend_on_chunks_or_order(chunk_rows):
    rows, labels = bounded(700, 5)
    coef = np.random.default_rng(1).normal(size=(3, 5)) * 4.0
    places = np.random.default_rng(2).permutation(len(rows))

    def sums(made):
        yield exact_class_sums(made, 3).value
        yield exact_gradient(made, coef, loss="softmax", clip_norm=0.3).value

    whole = SparseGridRows(rows, labels, step=STEP)
    other = SparseGridRows(
        rows[places], labels[places], step=STEP, chunk_rows=chunk_rows
    )
    for one, two in zip(sums(whole), sums(other), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_record_that_is_not_sampled_adds_nothing():
    rows, labels = bounded(1100, 4)
    coef, taken = np.ones((3, 4)), np.random.default_rng(0).random(2048) < 0.3
    parts = iter(taken.reshape(2, -1))
    options = {"loss": "softmax", "clip_norm": 1.0}
    made = SparseGridRows(rows, labels, step=STEP)
    found = exact_gradient(made, coef, sampler=lambda _: next(parts), **options)
    own = taken[: len(rows)]
    alone = SparseGridRows(rows[own], labels[own], step=STEP)
    expected = exact_gradient(alone, coef, **options).value
    np.testing.assert_array_equal(found.value, expected)


def test_coefficients_that_are_not_finite_release_zero_sums():
    made = SparseGridRows(np.full((3, 2), 5), np.zeros(3, int), step=STEP)
    coef = np.array([[np.inf, 0.0], [0.0, 1.0]])
    found = exact_gradient(made, coef, loss="softmax", clip_norm=1.0)
    assert not found.value.any()


@pytest.mark.parametrize("private", [True, False])
def test_weighted_sparse_rows_are_the_dense_ones(grid_rows, private):
    rows, labels = bounded(30, 3)
    weights = np.array([1.0, 0.37, 1e-3])
    dense = WeightedRows(grid_rows(rows, labels, step=STEP, private=private), weights)
    made = WeightedRows(
        SparseGridRows(rows, labels, step=STEP, private=private), weights
    )
    (found,), (expected,) = made.chunks(), dense.chunks()
    found = found.matrix.toarray()
    if private:
        np.testing.assert_array_equal(found, np.trunc(found))
    np.testing.assert_allclose(found, np.asarray(expected.rows), rtol=1e-6)
