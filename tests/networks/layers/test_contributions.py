"""Norms in float32: what rounding takes from them, in the worst order of summation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from privfeat.networks.layers import contributions
from privfeat.networks.layers.contributions import gram, squares, summed


def added_one_by_one(values, axis=None):
    """Return the sum of the last axis by the order whose error is the largest."""
    return jnp.asarray(np.add.accumulate(np.asarray(values), axis=-1)[..., -1])


@pytest.fixture
def worst_order(monkeypatch, plant):
    def inner_products(values):
        return added_one_by_one(values[:, :, None] * values[:, None])

    monkeypatch.setattr(jnp, "sum", added_one_by_one)
    plant("products of positions", inner_products)


@pytest.fixture(params=range(4))
def nearly_cancelling(request):
    """Two positions whose shares of the gradient differ in their last bits alone."""
    draw = np.random.default_rng(request.param)
    a = draw.normal(size=(1, 1, 300)).astype(np.float32)
    e = draw.normal(size=(1, 1, 200)).astype(np.float32)
    near = a * (1.0 + 2.0**-20 * draw.normal(size=a.shape)).astype(np.float32)
    return np.concatenate([a, near], axis=1), np.concatenate([e, -e], axis=1)


@pytest.mark.usefixtures("worst_order")
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param((2**24,), marks=pytest.mark.slow),
        (2**12, 2**12),
        (2**24 - 3,),
        (3, 5, 7),
    ],
)
def test_squares_lose_next_to_nothing_in_any_order(shape):
    """Numbers that a single long sum would lose beside the first one."""
    values = np.full((1, *shape), 2.0**-12.5, np.float32)
    values[(0,) * values.ndim] = 1.0
    exact = np.sum(values.astype(np.float64) ** 2)
    found = float(squares(jnp.asarray(values))[0])
    assert found == pytest.approx(exact, rel=2.0**-10)


def test_a_single_long_sum_would_lose_them():
    values = np.full(2**24, np.float32(2.0**-25))
    values[0] = 1.0
    assert float(added_one_by_one(values)) == 1.0  # of 1.5


@pytest.mark.parametrize("shape", [(2, 64, 32), (2, 2**14)])
def test_the_compiler_keeps_sums_short(shape):
    compiled = jax.jit(summed).lower(jnp.ones(shape)).compile().as_text()
    assert "dimensions={1,2}" not in compiled
    merged = jax.jit(lambda x: jnp.sum(jnp.sum(x, axis=2), axis=1))
    text = merged.lower(jnp.ones((2, 64, 32))).compile().as_text()
    assert "dimensions={1,2}" in text  # what it does to sums without a barrier


@pytest.mark.usefixtures("worst_order")
def test_gram_norms_are_not_below_the_norm(nearly_cancelling):
    a, e = nearly_cancelling
    (left,), (right,) = a.astype(np.float64), e.astype(np.float64)
    exact = np.linalg.norm(left.T @ right)
    largest = np.linalg.norm(left, axis=1) @ np.linalg.norm(right, axis=1)
    found = gram(jnp.asarray(a), jnp.asarray(e), lambda weights: weights)
    error = abs(float(found.squared_norms[0]) - exact**2)
    assert float(found.slack[0]) < 1e-4 * largest**2
    assert exact**2 < error < float(found.slack[0])


def test_gradients_are_formed_where_sums_are_too_long_for_the_slack():
    assert not contributions.keeping_is_cheaper(2, 2**15, 2**14)
    assert contributions.keeping_is_cheaper(2, 2**16, 2**14)


@pytest.mark.slow
def test_tables_are_formed_there_as_well(plant):
    draw = np.random.default_rng(0)
    ids = jnp.array([[0, 2, 2, 1], [3, 3, 3, 0]])
    e = jnp.asarray(draw.normal(size=(2, 4, 5)), jnp.float32)
    weights = jnp.array([0.5, 2.0])
    found = contributions.lookup(ids, e, 4)
    plant("most terms of a sum", 0)
    formed = contributions.lookup(ids, e, 4)
    assert formed.slack == 0.0
    np.testing.assert_allclose(formed.squared_norms, found.squared_norms, rtol=1e-5)
    sums = found.weighted_sum(weights), formed.weighted_sum(weights)
    np.testing.assert_allclose(*sums, atol=1e-5)


def test_norms_of_tables_know_rows_by_all_their_numbers():
    """The last row as -1 and as 3; what is outside of a table gets no gradient."""
    ids, e = jnp.array([[-1, 3, -1, 3], [-4, 0, 4, -5]]), jnp.ones((2, 4, 5))
    found = contributions.lookup(ids, e, 4)
    for record in range(2):
        gradient = found.weighted_sum(jnp.arange(2) == record)
        norm = float(jnp.sum(jnp.square(gradient)))
        assert norm <= float(found.squared_norms[record]) * (1 + 1e-6)
    np.testing.assert_allclose(found.squared_norms, [80.0, 30.0])


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_gradients_of_half_precision_have_norms_of_full(dtype):
    gradients = jnp.full((1, 2**18), 1e-4, dtype)
    exact = np.sum(np.asarray(gradients, np.float64) ** 2)
    for found in (contributions.kept(gradients), contributions.kept_list([*gradients])):
        assert float(found.squared_norms[0]) == pytest.approx(exact, rel=2.0**-10)
