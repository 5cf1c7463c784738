import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from privfeat.core.bounds.losses import curvatures, label_indicators, residuals
from tests import reference

LOSSES = ["softmax", "sigmoid", "squared"]
SCORES = np.array([[0.0, 0.0, 0.0], [1.0, -2.0, 3.0], [100.0, -100.0, 0.0]])


@pytest.mark.parametrize("loss", LOSSES)
def test_residuals_equal_the_reference(loss):
    labels = np.array([0, 2, 1])
    expected = [
        reference.prediction(loss, scores) - reference.indicator(label, 3)
        for scores, label in zip(SCORES, labels, strict=True)
    ]
    found = residuals(
        loss, jnp.asarray(SCORES, jnp.float32), jnp.asarray(labels)[:, None]
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("label", [-1, 3, 100])
def test_residuals_of_a_label_outside_the_outputs_are_the_predictions(loss, label):
    scores = jnp.asarray(SCORES[:1], jnp.float32)
    found = residuals(loss, scores, jnp.array([[label]]))
    np.testing.assert_allclose(found[0], reference.prediction(loss, SCORES[0]))


@pytest.mark.parametrize("loss", ["sigmoid", "squared"])
@pytest.mark.parametrize(
    ("labels", "carried"),
    [([0, 2], {0, 2}), ([2, -1], {2}), ([-1, -1], set()), ([1, 1], {1}), ([1, 7], {1})],
)
def test_residuals_of_several_labels_equal_the_reference(loss, labels, carried):
    """A label named twice counts once: else it would exceed the sensitivity."""
    scores = jnp.asarray(SCORES[1:2], jnp.float32)
    found = residuals(loss, scores, jnp.array([labels]))[0]
    expected = reference.prediction(loss, SCORES[1]) - reference.indicator(carried, 3)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_curvatures_are_p_times_one_minus_p(loss):
    expected = [reference.prediction(loss, scores) for scores in SCORES]
    expected = [p * (1.0 - p) for p in expected]
    found = curvatures(loss, jnp.asarray(SCORES, jnp.float32))
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_residuals_are_the_derivative_of_the_loss(loss):
    """By automatic differentiation of the loss as its definition reads."""

    def value(scores):
        if loss == "softmax":
            return -jax.nn.log_softmax(scores)[1]
        signs = jnp.array([-1.0, 1.0, -1.0])
        return -jnp.sum(jax.nn.log_sigmoid(signs * scores))

    scores = jnp.asarray(SCORES[1], jnp.float32)
    found = residuals(loss, scores[None, :], jnp.array([[1]]))[0]
    np.testing.assert_allclose(found, jax.grad(value)(scores), atol=1e-6)


def test_label_indicators_of_numpy_are_those_of_jax():
    labels = np.random.default_rng(0).integers(-2, 7, size=(50, 4)).astype(np.int32)
    found = label_indicators(labels, 5)
    assert found.dtype == bool
    np.testing.assert_array_equal(found, label_indicators(jnp.asarray(labels), 5))


def test_label_indicators_take_memory_for_records_times_outputs():
    """Not times labels: a chunk of 4,000 tags would take 16 GiB in each thread."""
    labels = np.tile(np.arange(300, dtype=np.int32), (200, 1))
    tracemalloc.start()
    try:
        assert label_indicators(labels, 300).all()
        assert tracemalloc.get_traced_memory()[1] < 50 * labels.size
    finally:
        tracemalloc.stop()
