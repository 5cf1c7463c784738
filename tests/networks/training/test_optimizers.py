"""Optimizers and schedules by name."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from privfeat.networks.training.optimizers import default_rate, make_optimizer

SETTINGS = {"schedule": "constant", "warmup_steps": 0, "n_iter": 10} | {
    "weight_decay": 0.0,
    "learning_rate": 0.1,
    "n_records": 50,
    "draw_key": lambda: jax.random.key(5),
}


def first_step(optimizer, **settings):
    transform = make_optimizer(optimizer, **SETTINGS | settings)
    parameters = {"w": jnp.array([2.0])}
    state = transform.init(parameters)
    with jax.numpy_dtype_promotion("standard"):
        moves, _ = transform.update({"w": jnp.array([0.5])}, state, parameters)
    return float(moves["w"][0])


def test_optimizers_take_the_steps_of_their_names():
    assert first_step("sgd") == pytest.approx(-0.05)
    assert first_step("heavy_ball") == pytest.approx(-0.05)
    assert first_step("nesterov") == pytest.approx(-0.05 * 1.9)
    assert first_step("adam") == pytest.approx(-0.1, rel=1e-3)
    assert first_step("adamw", weight_decay=0.5) == pytest.approx(-0.2, rel=1e-3)
    assert first_step("sgd", weight_decay=0.5) == pytest.approx(-0.15)


@pytest.mark.parametrize(
    ("optimizer", "momentum", "dampening"),
    [("sgd", 0.5, 0.9), ("heavy_ball", 1.0, 0.1), ("nesterov", 0.7, 0.0)],
)
def test_momentum_and_dampening_are_those_of_pytorch(optimizer, momentum, dampening):
    """The formula of `torch.optim.SGD`: the first gradient counts in full."""
    how = {"momentum": momentum, "dampening": dampening}
    transform = make_optimizer(optimizer, **SETTINGS | how)
    state, kept = transform.init({"w": jnp.zeros(1)}), None
    for gradient in (0.5, -2.0, 1.0, 3.0):
        with jax.numpy_dtype_promotion("standard"):
            moves, state = transform.update({"w": jnp.array([gradient])}, state)
        kept = (
            gradient if kept is None else momentum * kept + gradient * (1 - dampening)
        )
        along = gradient + momentum * kept if optimizer == "nesterov" else kept
        assert float(moves["w"][0]) == pytest.approx(-0.1 * along, rel=1e-5)


@pytest.mark.parametrize(
    ("optimizer", "how"),
    [
        ("adam", {"momentum": 0.5}),
        (optax.sgd(0.3), {"dampening": 0.5, "learning_rate": None}),
        ("nesterov", {"dampening": 0.5}),
        ("sghmc", {"dampening": 0.5}),
        ("sgld", {"momentum": 0.5}),
        ("sgd", {"momentum": 1.5}),
        ("sgd", {"momentum": 0.5, "dampening": np.nan}),
    ],
)
def test_momentum_of_other_optimizers_is_refused(optimizer, how):
    with pytest.raises(ValueError, match=r"momentum|dampening"):
        make_optimizer(optimizer, **SETTINGS | how)


def test_langevin_noise_has_the_variance_of_its_rate():
    transform = make_optimizer("sgld", **SETTINGS)
    parameters = {"w": jnp.zeros(20_000)}
    state = transform.init(parameters)
    steps = []
    for _ in range(2):
        with jax.numpy_dtype_promotion("standard"):
            moves, state = transform.update({"w": jnp.ones(20_000)}, state, parameters)
        steps.append(np.asarray(moves["w"]))
    assert steps[0].mean() == pytest.approx(-0.1, abs=5 * 0.0632 / 141)
    assert steps[0].std() == pytest.approx(np.sqrt(2 * 0.1 / 50), rel=0.03)
    assert abs(np.corrcoef(steps)[0, 1]) < 0.04


def test_hamiltonian_steps_are_those_of_chen_et_al():
    """Their Equation 15 with rate ``r / n`` and friction ``1 - m``, of mean gradients.

    ``v = m v - r g + N(0, 2 (1 - m) r / n)``, over 20,000 coordinates: means to five
    standard errors. Without momentum it is Langevin dynamics.
    """
    rate, n, m, size = 0.1, 50, 0.8, 20_000
    transform = make_optimizer("sghmc", **SETTINGS | {"momentum": m})
    state = transform.init({"w": jnp.zeros(size)})
    variance, moves, means = 2 * (1 - m) * rate / n, [], []
    for gradient in (1.0, -3.0, 2.0):
        with jax.numpy_dtype_promotion("standard"):
            found, state = transform.update({"w": jnp.full(size, gradient)}, state)
        moves.append(np.asarray(found["w"]))
        means.append(m * (means[-1] if means else 0.0) - rate * gradient)
    noise = np.diff([np.zeros(size), *moves], axis=0)  # of which m v is taken away
    noise[1:] += (1 - m) * np.array(moves[:-1])
    assert np.mean(moves, axis=1) == pytest.approx(means, abs=5 * 0.02 / 141)
    assert noise.std(axis=1) == pytest.approx(variance**0.5, rel=0.03)
    assert np.abs(np.corrcoef(noise) - np.eye(3)).max() < 0.04
    key = {"draw_key": lambda: jax.random.key(7)}
    plain = make_optimizer("sghmc", **SETTINGS | key | {"momentum": 0.0})
    langevin = make_optimizer("sgld", **SETTINGS | key)
    for each in (plain, langevin):
        state = each.init({"w": jnp.zeros(3)})
        with jax.numpy_dtype_promotion("standard"):
            found, _ = each.update({"w": jnp.ones(3)}, state)
        moves.append(np.asarray(found["w"]))
    assert np.array_equal(*moves[-2:])


def test_warm_up_rises_and_cosine_falls_to_zero():
    settings = {"schedule": "cosine", "warmup_steps": 4, "n_iter": 12}
    transform = make_optimizer("sgd", **SETTINGS | settings)
    state, rates = transform.init({"w": jnp.zeros(1)}), []
    for _ in range(13):
        with jax.numpy_dtype_promotion("standard"):
            moves, state = transform.update({"w": jnp.ones(1)}, state)
        rates.append(-float(moves["w"][0]))
    np.testing.assert_allclose(rates[:5], [0.025, 0.05, 0.075, 0.1, 0.1], rtol=1e-5)
    assert np.all(np.diff(rates[4:]) < 0)
    assert rates[-1] == pytest.approx(0.0, abs=1e-8)


def test_an_optax_object_brings_its_own_rate():
    mine = optax.sgd(0.3)
    with pytest.raises(ValueError, match="must be None"):
        make_optimizer(mine, **SETTINGS)
    transform = make_optimizer(mine, **SETTINGS | {"learning_rate": None})
    weights, slope = {"w": jnp.ones(2)}, {"w": jnp.ones(2)}
    moves, _ = transform.update(slope, transform.init(weights), weights)
    np.testing.assert_array_equal(moves["w"], np.full(2, np.float32(-0.3)))


def test_default_rate_falls_with_steps_and_inputs_of_a_layer():
    shapes = [(3, 3, 8, 16), (16,), (64, 10), (10,)]
    rate = default_rate("adam", shapes, 100)
    assert rate == pytest.approx(1.5 * np.sqrt(26 / (100 * (9 * 8 * 16 + 640))))
    assert default_rate("adam", shapes, 400) == pytest.approx(rate / 2)
    assert default_rate("adamw", shapes, 100) == rate
    assert default_rate("sgd", shapes, 100) == default_rate("adam", [], 100) == 1e-3


def test_noise_alone_moves_weights_by_what_the_default_rate_says():
    """1.5 times their size, with variance one over the inputs: 100 x 50 weights."""
    shape, n_iter = (100, 50), 200
    rate = default_rate("adam", [shape], n_iter)
    transform = make_optimizer(
        "adam", **SETTINGS | {"learning_rate": rate, "n_iter": n_iter}
    )
    draw = np.random.default_rng(0)
    weights = {"w": jnp.zeros(shape)}
    state = transform.init(weights)
    for _ in range(n_iter):
        noise = {"w": jnp.asarray(draw.normal(size=shape), jnp.float32)}
        with jax.numpy_dtype_promotion("standard"):
            moves, state = transform.update(noise, state, weights)
            weights = optax.apply_updates(weights, moves)
    moved = float(jnp.sqrt(jnp.mean(weights["w"] ** 2)))
    assert moved == pytest.approx(1.5 * np.sqrt(1 / 100), rel=0.15)
