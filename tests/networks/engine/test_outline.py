"""A network whose initial parameters are shapes alone."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from privfeat.networks.engine.network import Network
from privfeat.networks.layers import Dense


class Deep(nnx.Module):
    """Eleven layers, so that the names of two begin with 1, each with its own size."""

    def __init__(self, *, rngs):
        sizes = [*range(3, 15)]
        self.layers = nnx.List(
            Dense(one, two, rngs=rngs) for one, two in pairwise(sizes)
        )

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@pytest.mark.slow
def test_outline_binds_parameters_of_many_layers_as_the_network_does():
    """By their names, whose order is another for texts than for numbers."""
    network = Network(Deep(rngs=nnx.Rngs(params=jax.random.key(0))))
    x = jnp.ones((2, 3))
    expected = network(network.initial, x)
    found = network.outline()(network.initial, x)
    np.testing.assert_array_equal(found, expected)
    assert list(network.outline().initial) == list(network.initial)
