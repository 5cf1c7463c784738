"""Sums against whole-number arithmetic in Python, which has no rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from privfeat.core.bounds.grid import grid_step
from privfeat.core.sums.arithmetic import kernels
from privfeat.core.sums.records import CHUNK_ROWS
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
    class_gram_stack,
    curvature_stack,
    integers,
    python_class_sums,
    python_gram,
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=hnp.arrays(np.int64, (7, 3), elements=integers))
def test_exact_gram_equals_whole_number_arithmetic(grid_rows, rows):
    found = exact_gram(grid_rows(rows.astype(float), np.zeros(7), step=STEP)).value
    np.testing.assert_array_equal(found, python_gram(rows).astype(float) * STEP**2)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=hnp.arrays(np.int64, (7, 3), elements=integers),
    labels=hnp.arrays(np.int64, (7,), elements=st.integers(-1, 3)),
)
def test_exact_class_sums_equals_whole_number_arithmetic(grid_rows, rows, labels):
    found = exact_class_sums(grid_rows(rows.astype(float), labels, step=STEP), 3).value
    expected = python_class_sums(rows, labels, 3).astype(float) * STEP
    np.testing.assert_array_equal(found, expected)


def test_exact_gram_is_exact_at_the_largest_chunk(grid_rows):
    rows = np.full((CHUNK_ROWS, 2), LIMIT) - np.array([[0, 1]])
    found = exact_gram(grid_rows(rows.astype(float), np.zeros(CHUNK_ROWS), step=1.0))
    np.testing.assert_array_equal(found.value, python_gram(rows).astype(float))


def test_sums_in_several_passes_equal_those_in_one(grid_rows, plant):
    rows, labels = bounded(700, 5)
    part = grid_rows(rows, labels, step=STEP, chunk_rows=100)
    coef = np.random.default_rng(1).normal(size=(3, 5))
    expected = class_gram_stack(part, 3), curvature_stack(part, coef, "softmax")
    plant("memory for Gram matrices", 1)
    found = class_gram_stack(part, 3), curvature_stack(part, coef, "softmax")
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("order", ["given", "reversed", "sorted", "interleaved"])
def test_exact_sums_survive_adversarial_orders(grid_rows, order):
    """Float sums of these depend on the order by far more than one record.

    The construction of Casacuberta et al. (2022): large terms, then many small ones
    that a running float total swallows, and large terms that cancel.
    """
    large, small = np.full((40, 1), LIMIT), np.full((4000, 1), 1)
    column = np.concatenate([large, small, -large])
    rows = np.hstack([column, np.ones_like(column)])
    places = {
        "given": np.arange(len(rows)),
        "reversed": np.arange(len(rows))[::-1],
        "sorted": np.argsort(column[:, 0]),
        "interleaved": np.random.default_rng(0).permutation(len(rows)),
    }[order]
    rows = rows[places].astype(float)
    labels = np.zeros(len(rows))
    found = exact_class_sums(grid_rows(rows, labels, step=1.0), 1).value
    np.testing.assert_array_equal(found, [[4000.0, 4080.0]])
    found = exact_gram(grid_rows(rows, labels, step=1.0)).value
    np.testing.assert_array_equal(found, python_gram(rows).astype(float))


@pytest.mark.parametrize("chunk_rows", [1, 7, 64, 500])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
def test_sums_do_not_depend_on_chunks_or_order(grid_rows, loss, chunk_rows):
    rows, labels = bounded(700, 5)
    coef = np.random.default_rng(1).normal(size=(3, 5)) * 4.0
    whole = grid_rows(rows, labels, step=STEP)
    places = np.random.default_rng(2).permutation(len(rows))
    if chunk_rows == 1:
        whole, places = (
            grid_rows(rows[:40], labels[:40], step=STEP),
            np.arange(40)[::-1],
        )
    other = grid_rows(rows[places], labels[places], step=STEP, chunk_rows=chunk_rows)

    def sums(part):
        yield exact_gram(part).value
        yield class_gram_stack(part, 3)
        yield exact_gram(part, clip_norm=0.4).value
        yield exact_class_sums(part, 3).value
        yield exact_gradient(part, coef, loss=loss, clip_norm=0.3).value
        if loss != "squared":
            yield curvature_stack(part, coef, loss)

    for one, two in zip(sums(whole), sums(other), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("n_rows", [1, 63, 64, 1023, 1024])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
def test_one_record_moves_a_sum_by_exactly_its_contribution(grid_rows, loss, n_rows):
    """Also one that pushes all others to the next place, or needs a new chunk."""
    rows, labels = bounded(n_rows + 1, 5, seed=n_rows)
    coef = np.random.default_rng(1).normal(size=(3, 5)) * 4.0

    def sums(part):
        part = grid_rows(rows[part], labels[part], step=STEP)
        yield exact_gram(part).value
        yield exact_class_sums(part, 3).value
        yield exact_gradient(part, coef, loss=loss, clip_norm=0.3).value
        if loss != "squared":
            yield curvature_stack(part, coef, loss)

    record, rest, everyone = slice(0, 1), slice(1, None), slice(None)
    for alone, without, together in zip(
        sums(record), sums(rest), sums(everyone), strict=True
    ):
        np.testing.assert_array_equal(alone + without, together)


@pytest.mark.parametrize("n_rows", [0, 5, 3 * CHUNK_ROWS, 17 * CHUNK_ROWS + 3])
@pytest.mark.parametrize("memory", [1, 3 * 8 * 2 * CHUNK_ROWS, 2**28])
def test_grams_of_joined_chunks_are_exact(grid_rows, plant, n_rows, memory):
    plant("memory for joined chunks", memory)
    rows = np.random.default_rng(0).choice([-LIMIT, LIMIT - 1, LIMIT], (n_rows, 2))
    made = grid_rows(rows, np.zeros(n_rows), step=1.0)
    found = exact_gram(made)
    np.testing.assert_array_equal(found.total, rows.T @ rows)
    clipped = exact_gram(made, clip_norm=2.0**20)
    assert np.trace(clipped.value) <= n_rows * 2.0**40


def test_samplers_draw_in_the_order_of_the_chunks(grid_rows):
    rows, labels = bounded(700, 5)
    coef = np.random.default_rng(1).normal(size=(3, 5))
    draws = [
        np.random.default_rng(place).random(CHUNK_ROWS) < 0.5 for place in range(7)
    ]

    def gradient(rows, labels, masks):
        part = grid_rows(rows, labels, step=STEP, chunk_rows=100)
        options = {"loss": "softmax", "clip_norm": 0.3}
        left = iter(masks)
        return exact_gradient(part, coef, sampler=lambda _: next(left), **options).value

    kept = np.concatenate([mask[:100] for mask in draws])
    every = np.ones_like(draws)
    expected = gradient(rows[kept], labels[kept], every)
    np.testing.assert_array_equal(gradient(rows, labels, draws), expected)


def test_class_grams_multiply_a_chunk_at_a_time(grid_rows, plant):
    """More rows would not have room in a float64; five times 205 is one too many."""
    rows = np.random.default_rng(0).integers(-9, 9, (2255, 3))
    made = grid_rows(rows, np.zeros(len(rows)), step=1.0, chunk_rows=205)
    genuine, sizes = plant.genuine("product of rows with themselves"), []
    plant(
        "product of rows with themselves",
        lambda rows, _: sizes.append(len(rows)) or genuine(rows),
    )
    (gram,) = exact_class_grams(made, 1)
    np.testing.assert_array_equal(gram.value, rows.T @ rows)
    assert sizes == [820, 820, 615]
    assert max(sizes) <= CHUNK_ROWS


def test_sums_of_no_records_are_zero_of_the_right_shape(grid_rows):
    part = grid_rows(np.zeros((0, 3)), np.zeros(0), step=STEP)
    coef = np.ones((2, 3))
    assert not exact_gram(part).value.any()
    assert class_gram_stack(part, 2).shape == (2, 3, 3)
    assert exact_class_sums(part, 2).value.shape == (2, 3)
    gradient = exact_gradient(part, coef, loss="softmax", clip_norm=1.0).value
    np.testing.assert_array_equal(gradient, np.zeros((2, 3)))
    assert curvature_stack(part, coef, "softmax").shape == (2, 3, 3)


def test_exact_class_grams_are_exact_beyond_a_chunk_of_a_class(grid_rows):
    """Rows of a class come a few at a time, and fill several chunks."""
    rows = np.random.default_rng(0).integers(-9, 9, (1500, 3))
    labels = np.arange(1500) % 3 // 2  # two of three records are of class 0
    made = grid_rows(rows, labels, step=1.0, chunk_rows=700)
    for label, gram in enumerate(exact_class_grams(made, 2)):
        own = rows[labels == label]
        np.testing.assert_array_equal(gram.value, own.T @ own)


def test_sums_on_another_device_are_those_of_a_cpu(grid_rows, monkeypatch, plant):
    """The products for accelerators, which are exact as well, run on any device."""
    rows = np.random.default_rng(0).integers(-9, 9, (20, 3))
    made = grid_rows(rows, np.arange(20) % 2, step=1.0)
    (chunk,) = made.chunks()
    plant("choice of slices", lambda: False)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    np.testing.assert_array_equal(exact_gram(made).value, rows.T @ rows)
    with jax.enable_x64(True):
        wide = jnp.asarray(chunk.rows, jnp.float64)
        product = kernels._transposed_product(wide, wide[:, :2], False)
    np.testing.assert_array_equal(product, rows[:, :2].T @ rows)


def test_a_process_without_rows_has_the_unit_of_the_others(grid_rows):
    rows, labels = bounded(5, 3)
    own = exact_gram(grid_rows(rows, labels, step=STEP), clip_norm=0.25)
    none = exact_gram(grid_rows(rows[:0], labels[:0], step=STEP), clip_norm=0.25)
    assert none.grid_step == own.grid_step == grid_step(0.25) ** 2
