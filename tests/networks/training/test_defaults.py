"""Epochs and batches that follow from public numbers."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from privfeat import DPSGDClassifier
from privfeat.networks.engine.losses import cross_entropy
from privfeat.networks.engine.network import Network
from privfeat.networks.training.defaults import default_epochs, fit_length
from privfeat.networks.weights import build


def planned(n_units=10_000, **params):
    clf = DPSGDClassifier(accounting="rdp", **params)
    (release,) = clf.planned(n_units).releases
    return release


def signal(release):
    """Signal over noise of a whole fit, up to a factor that is the same for all."""
    share = release.query.sampling_prob / release.noise_multiplier
    return share * math.sqrt(release.query.count)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_all_further_epochs_together_gain_less_than_a_tenth(epsilon):
    default, all_records = (
        planned(epsilon=epsilon),
        planned(epsilon=epsilon, epochs=2e2),
    )
    assert all_records.query.sampling_prob == 1.0
    assert all_records.query.count == default.query.count
    assert 0.9 < signal(default) / signal(all_records) < 1.0


def test_default_epochs_grow_with_the_budget_up_to_a_bound():
    found = [default_epochs(epsilon, 1e-5) for epsilon in (0.1, 1.0, 2.0, 8.0)]
    assert found == sorted(found)
    assert found[-1] == default_epochs(math.inf, 1e-5) == default_epochs(None, 1e-5)


def test_default_batches_are_in_proportion_to_the_records():
    few, many = planned(1_000, epsilon=2.0), planned(10_000, epsilon=2.0)
    assert few.query == many.query
    assert few.query.count == 200


def test_what_is_given_is_kept_and_the_rest_follows_from_it():
    budget = 8.0, 1e-5, "add_remove"
    assert fit_length(10_000, 500, None, None, *budget) == (200, 500.0)
    assert fit_length(10_000, "auto", 4.0, None, *budget) == (200, 200.0)
    assert fit_length(10_000, "auto", 4.0, 40, *budget) == (40, 1000.0)
    assert fit_length(10_000, 50, None, 7, *budget) == (7, 50.0)
    assert fit_length(10_000, "auto", 1e3, None, *budget) == (1000, 10_000.0)


@pytest.mark.parametrize("params", [{"expected_batch_size": None}, {}])
def test_without_sampling_a_fit_takes_ten_full_steps(params):
    adjacency = "add_remove" if params else "replace_one"
    clf = DPSGDClassifier(epsilon=1.0, adjacency=adjacency, **params)
    (release,) = clf.planned(500).releases
    assert (release.query.count, release.query.sampling_prob) == (10, 1.0)


def test_a_default_budget_has_the_defaults_of_its_epsilon():
    assert planned().query == planned(epsilon=1.0).query
    assert planned(noise_multiplier=1.0).query.sampling_prob == 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "sample_convnet", "simpleVGG-16(1)-32"])
def test_default_clip_norm_is_below_the_gradients_of_a_fresh_network(name):
    rngs = nnx.Rngs(params=jax.random.key(0))
    network = Network(build(name, (16, 16, 3), 10, rngs=rngs))
    draw = np.random.default_rng(0)
    X = jnp.asarray(draw.uniform(-1, 1, (20, 1, 16, 16, 3)), jnp.float32)
    y = jnp.asarray(draw.integers(0, 10, (20, 1)))

    def loss(parameters, x, label):
        return jnp.sum(cross_entropy(network(parameters, x), label))

    gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(network.initial, X, y)
    squares = [jnp.sum(g.reshape(20, -1) ** 2, axis=1) for g in gradients.values()]
    assert float(jnp.sqrt(sum(squares)).min()) > DPSGDClassifier().clip_norm
