import math

import numpy as np
import optax
import pytest

from privfeat.solvers.optimizers import (
    check_optimizer,
    start_optimizer,
    takes_unit_steps,
)

GRADIENTS = np.random.default_rng(0).normal(size=(4, 2, 3))


def run(optimizer, learning_rate, n_steps=100):
    coef = np.ones((2, 3))
    update = start_optimizer(optimizer, learning_rate, coef, n_steps)
    for gradient in GRADIENTS:
        coef = update(gradient, coef)
    return coef


def test_sgd_moves_against_the_gradient():
    np.testing.assert_allclose(run("sgd", 0.1), 1.0 - 0.1 * GRADIENTS.sum(axis=0))


def test_momentum_accumulates_gradients():
    coef, velocity = np.ones((2, 3)), 0.0
    for gradient in GRADIENTS:
        velocity = 0.9 * velocity + gradient
        coef = coef - 0.1 * velocity
    np.testing.assert_allclose(run("momentum", 0.1), coef)


@pytest.mark.parametrize(
    ("rate", "n_steps", "decay"),
    [(1.0, 60, 0.9), (0.1, 1000, 0.9), (0.1, 20, 0.7), (0.1, 12, 0.5), (0.1, 1, 0.5)],
)
def test_adam_follows_its_definition_with_a_memory_of_a_sixth(rate, n_steps, decay):
    coef, first, second = np.ones((2, 3)), 0.0, 0.0
    for t, gradient in enumerate(GRADIENTS, start=1):
        first = decay * first + (1.0 - decay) * gradient
        second = 0.999 * second + 0.001 * gradient**2
        root = np.sqrt(second / (1.0 - 0.999**t)) + 1e-8
        coef = coef - rate * first / (1.0 - decay**t) / root
    np.testing.assert_allclose(run("adam", rate, n_steps), coef, rtol=1e-6)


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        ("adam", True),
        ("rmsprop", True),
        ("sgd", False),
        ("momentum", False),
        (optax.adam(0.1), False),
    ],
)
def test_takes_unit_steps_knows_the_optimizers_that_ignore_the_scale(
    optimizer, expected
):
    """Where it says so, no rate need be given; an optax optimizer has its own."""
    assert takes_unit_steps(optimizer) is expected
    if expected:
        check_optimizer(optimizer, None)


@pytest.mark.parametrize("scale", [10.0, 1e6])
@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
def test_unit_steps_do_not_depend_on_the_scale_of_the_gradients(optimizer, scale):
    coefs = []
    for factor in (1.0, scale):
        update = start_optimizer(optimizer, 0.1, np.ones((2, 3)), 50)
        coef = np.ones((2, 3))
        for gradient in GRADIENTS:
            coef = update(factor * gradient, coef)
        coefs.append(coef)
    np.testing.assert_allclose(coefs[0], coefs[1], rtol=1e-3)


def test_rmsprop_divides_by_the_root_mean_square():
    coef, second = np.ones((2, 3)), 0.0
    for gradient in GRADIENTS:
        second = 0.9 * second + 0.1 * gradient**2
        coef = coef - 0.1 * gradient / np.sqrt(second + 1e-8)
    np.testing.assert_allclose(run("rmsprop", 0.1), coef, rtol=1e-6)


def test_optax_optimizer_brings_its_own_learning_rate():
    np.testing.assert_allclose(run(optax.sgd(0.1), None), run("sgd", 0.1))


def test_start_optimizer_starts_afresh():
    np.testing.assert_array_equal(run("adam", 0.1), run("adam", 0.1))


@pytest.mark.validation
@pytest.mark.parametrize("optimizer", ["", "Adam", "lbfgs"])
def test_check_optimizer_refuses_an_unknown_name(optimizer):
    with pytest.raises(ValueError, match="optimizer must be one of"):
        check_optimizer(optimizer, None)


@pytest.mark.validation
@pytest.mark.parametrize("optimizer", [None, 1, optax.sgd])
def test_check_optimizer_refuses_what_is_no_optimizer(optimizer):
    with pytest.raises(TypeError, match="optimizer must be"):
        check_optimizer(optimizer, None)


@pytest.mark.validation
@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_check_optimizer_refuses_a_learning_rate_outside_its_range(rate):
    with pytest.raises(ValueError, match="learning_rate must be"):
        check_optimizer("adam", rate)


@pytest.mark.validation
@pytest.mark.parametrize("optimizer", ["sgd", "momentum"])
def test_check_optimizer_wants_a_learning_rate_where_the_scale_counts(optimizer):
    with pytest.raises(ValueError, match="learning_rate must be a number"):
        check_optimizer(optimizer, None)


@pytest.mark.validation
def test_check_optimizer_refuses_a_second_learning_rate():
    with pytest.raises(ValueError, match="learning_rate must be None"):
        check_optimizer(optax.sgd(0.1), 0.1)
