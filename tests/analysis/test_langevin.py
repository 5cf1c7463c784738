"""DP-SGD as Langevin dynamics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from privfeat.analysis.langevin import posterior_rate
from privfeat.networks.training.optimizers import make_optimizer


def test_posterior_rate_is_the_mapping_of_bu_et_al():
    """``eta_DP = eta n / 2`` and ``sigma R n / (2 B) = 1 / sqrt(eta)``."""
    n, batch, sigma, bound = 60_000, 256, 1.1, 20.0
    eta = (2 * batch / (sigma * bound * n)) ** 2
    found = posterior_rate(n, batch, sigma, bound)
    assert found == pytest.approx(eta * n / 2)


@pytest.mark.parametrize("momentum", [0.0, 0.8])
def test_noisy_descent_has_the_noise_of_the_sampler_at_that_rate(momentum):
    """Stddev of the first step over 40,000 coordinates, to 3 % (eight deviations)."""
    n, batch, sigma, bound = 500, 50, 2.0, 3.0
    rate = posterior_rate(n, batch, sigma, bound, momentum=momentum)
    settings = {"schedule": "constant", "warmup_steps": 0, "n_iter": 10}
    settings |= {"weight_decay": 0.0, "n_records": n, "learning_rate": rate}
    key = jax.random.key(3)
    moves = []
    for name in ("sgd", "sghmc"):
        made = make_optimizer(name, momentum=momentum, draw_key=lambda: key, **settings)
        release = jnp.zeros(40_000)
        if name == "sgd":
            noise = np.random.default_rng(0).normal(size=40_000)
            release = jnp.asarray(sigma * bound / batch * noise, jnp.float32)
        with jax.numpy_dtype_promotion("standard"):
            found, _ = made.update({"w": release}, made.init({"w": release}))
        moves.append(np.asarray(found["w"]).std())
    assert moves[0] == pytest.approx(moves[1], rel=0.03)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"n_samples": 0}, "n_samples"),
        ({"expected_batch_size": 11}, "expected_batch_size"),
        ({"noise_multiplier": float("nan")}, "noise_multiplier"),
        ({"clip_norm": 0}, "clip_norm"),
        ({"momentum": 1.0}, "momentum"),
    ],
)
def test_posterior_rate_refuses_in_words(change, name):
    good = {"n_samples": 10, "expected_batch_size": 5, "noise_multiplier": 1.0}
    with pytest.raises(ValueError, match=name):
        posterior_rate(**good | {"clip_norm": 1.0} | change)
