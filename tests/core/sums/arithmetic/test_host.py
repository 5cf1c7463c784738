"""The arithmetic of a CPU against that of accelerators, and against whole numbers."""

from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfeat.core.bounds.clipping import clip_residuals
from privfeat.core.bounds.losses import residuals
from privfeat.core.bounds.sensitivity import largest_residual, residual_norm
from privfeat.core.sums.arithmetic import host, kernels
from privfeat.core.sums.records import CHUNK_ROWS
from privfeat.core.sums.trials import hard_numbers
from tests.core.conftest import GridRows
from tests.core.grids import LIMIT, STEP

LOSSES = ["softmax", "sigmoid", "squared"]


def chunk_of(grid_rows, n_columns, n_outputs, seed=0):
    """A chunk of rows as large as the grid, each with two labels, or one, or none."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-LIMIT, LIMIT + 1, (CHUNK_ROWS, n_columns))
    rows[:3] = LIMIT
    labels = rng.integers(-1, n_outputs + 1, (CHUNK_ROWS, 2))
    (chunk,) = grid_rows(rows, labels, step=STEP).chunks()
    return chunk, rows


def whole_numbers(n_outputs, n_columns, seed=1):
    rng = np.random.default_rng(seed)
    return np.trunc(rng.normal(size=(n_outputs, n_columns)) * 2.0**24)


@pytest.mark.parametrize("n_outputs", [1, 2, 7, 8, 10, 33, 130])
def test_class_sums_are_those_of_accelerators(grid_rows, n_outputs):
    chunk, _ = chunk_of(grid_rows, 5, n_outputs)
    with jax.enable_x64(True):
        expected = kernels.class_sums_of(chunk, n_outputs)
    np.testing.assert_array_equal(host.class_sums_of(chunk, n_outputs), expected)


@pytest.mark.parametrize("n_outputs", [1, 2, 10, 33, 130])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_whole_number_products_of_clipped_residuals(
    grid_rows, loss, n_outputs
):
    """A record at a time, in integers of Python: blocks, and neighbours, do nothing."""
    chunk, rows = chunk_of(grid_rows, 3, n_outputs)
    whole, grid_step, kept = (
        whole_numbers(n_outputs, 3),
        2.0**-43,
        np.arange(CHUNK_ROWS) % 3,
    )
    found = host.gradient_of(
        chunk, kept > 0, whole=whole, grid_step=grid_step, loss=loss, clip_norm=0.7
    )
    scores = np.array(rows.astype(object) @ whole.astype(int).astype(object).T)
    residual = residuals(
        loss,
        np.asfortranarray(scores.astype(float) * grid_step).astype(np.float32),
        np.asarray(chunk.labels),
    )
    clipped = clip_residuals(
        residual.astype(float),
        np.asarray(chunk.row_norms),
        clip_norm=0.7,
        radius=residual_norm(loss, n_outputs),
        largest=largest_residual(loss),
    )
    clipped = clipped.astype(int).astype(object) * (kept > 0)[:, None]
    np.testing.assert_array_equal(found, clipped.T @ rows.astype(object))
    assert np.any(found)


@pytest.mark.slow
@pytest.mark.parametrize("n_outputs", [2, 10])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_those_of_accelerators_but_for_the_last_bits(
    grid_rows, loss, n_outputs
):
    chunk, _ = chunk_of(grid_rows, 3, n_outputs)
    options = {
        "whole": whole_numbers(n_outputs, 3),
        "grid_step": 2.0**-43,
        "loss": loss,
    }
    for clip_norm, kept in [(0.7, None), (None, np.arange(CHUNK_ROWS) % 3 == 0)]:
        found = host.gradient_of(chunk, kept, clip_norm=clip_norm, **options)
        with jax.enable_x64(True):
            other = kernels.gradient_of(chunk, kept, clip_norm=clip_norm, **options)
        np.testing.assert_allclose(found, other, rtol=1e-4, atol=1e-5 * np.max(found))
    one = host.root_curvatures_of(chunk, options["whole"], 2.0**-43, "softmax")
    with jax.enable_x64(True):
        two = kernels.root_curvatures_of(chunk, options["whole"], 2.0**-43, "softmax")
    np.testing.assert_allclose(one, two, atol=1e-4)


@settings(max_examples=30)
@given(
    place=st.integers(0, CHUNK_ROWS - 1),
    n_outputs=st.sampled_from([1, 2, 9, 16, 40, 128]),
    loss=st.sampled_from(LOSSES),
    neighbours=st.sampled_from([0, 1, LIMIT]),
)
def test_a_record_adds_the_same_at_every_place_among_all_neighbours(
    place, n_outputs, loss, neighbours
):
    rng = np.random.default_rng(n_outputs)
    record = np.trunc(rng.normal(size=5) * LIMIT / 8)
    options = {
        "whole": whole_numbers(n_outputs, 5),
        "grid_step": 2.0**-40,
        "loss": loss,
    }

    def gradient(rows, kept):
        labels = np.zeros(CHUNK_ROWS)
        (chunk,) = GridRows(rows, labels, step=STEP).chunks()
        return host.gradient_of(chunk, kept, clip_norm=0.5, **options)

    rows = np.full((CHUNK_ROWS, 5), neighbours) * rng.choice([-1, 1], (CHUNK_ROWS, 5))
    only = np.arange(CHUNK_ROWS)
    rows[place] = record
    found = gradient(rows, only == place)
    alone = np.zeros((CHUNK_ROWS, 5))
    alone[0] = record
    np.testing.assert_array_equal(found, gradient(alone, only == 0))


@pytest.mark.parametrize("loss", LOSSES)
def test_scores_that_are_no_numbers_add_nothing(grid_rows, loss):
    chunk, _ = chunk_of(grid_rows, 3, 4)
    whole = np.full((4, 3), np.nan)
    found = host.gradient_of(
        chunk, whole=whole, grid_step=1.0, loss=loss, clip_norm=1.0
    )
    np.testing.assert_array_equal(found, np.zeros((4, 3)))


def test_blocks_have_one_size_and_hold_every_row_once(grid_rows):
    chunk, rows = chunk_of(grid_rows, 2, 1)
    for n_outputs in [1, 8, 10, 100, 127, 128, 5000]:
        parts = [
            (part.stop - part.start, wide.copy())
            for part, wide in host._blocks(chunk.rows, n_outputs)
        ]
        assert len({size for size, _ in parts}) == 1
        np.testing.assert_array_equal(np.concatenate([w for _, w in parts]), rows)


@pytest.mark.parametrize("n_outputs", [2, 5, 15, 17])
def test_batches_of_rows_have_the_products_of_whole_numbers(n_outputs):
    """Rows, residuals and coefficients as large as allowed, at sums of ``2**53``."""
    rows, narrow, coef = (part.astype(np.int64) for part in hard_numbers())
    narrow, coef = narrow[:, :n_outputs], coef[:n_outputs]
    sums, scores = host.products_of(
        rows.astype(np.float32), narrow.astype(np.float64), coef.astype(np.float64)
    )
    np.testing.assert_array_equal(sums, narrow.T @ rows)
    np.testing.assert_array_equal(scores, rows // 32 @ coef.T)
    assert np.max(np.abs(sums)) > 2**49


@pytest.mark.parametrize("n_outputs", [2, 10, 15])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_of_batches_are_those_of_blocks(grid_rows, plant, loss, n_outputs):
    chunk, rows = chunk_of(grid_rows, 1000, n_outputs)
    whole, grid_step = np.trunc(whole_numbers(n_outputs, 1000) / 16.0), 2.0**-44
    options = {"whole": whole, "grid_step": grid_step, "loss": loss, "clip_norm": 0.7}
    found = host.gradient_of(chunk, np.arange(CHUNK_ROWS) % 3 > 0, **options)
    assert len(host._batches(rows[:512], n_outputs)) == 8
    plant("outputs of batches", 0)
    assert len(host._batches(rows[:512], n_outputs)) == 1
    expected = host.gradient_of(chunk, np.arange(CHUNK_ROWS) % 3 > 0, **options)
    np.testing.assert_array_equal(found, expected)
    assert np.any(found)


def test_chunks_in_several_threads_do_not_disturb_each_other(grid_rows):
    chunks = [chunk_of(grid_rows, 40, 10, seed)[0] for seed in range(4)]
    options = {"whole": whole_numbers(10, 40), "grid_step": 2.0**-44, "loss": "softmax"}

    def gradient(chunk):
        return host.gradient_of(chunk, clip_norm=1.0, **options)

    expected = [gradient(chunk) for chunk in chunks]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(gradient, chunks * 5))
    np.testing.assert_array_equal(found, expected * 5)


def test_rows_that_do_not_fill_a_block_are_refused():
    """One row would be repeated in the place of all."""
    with pytest.raises(ValueError, match="reshape"):
        list(host._blocks(np.ones((CHUNK_ROWS + 1, 2), np.float32), 2))
