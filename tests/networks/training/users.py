"""Small networks that learn for users."""

import jax.numpy as jnp
import numpy as np
from flax import nnx

from privfeat.networks.layers import Dense
from tests.networks.tiny import TINY


def two_layers(shape, n_outputs, *, rngs):
    return nnx.Sequential(
        Dense(*shape, 6, rngs=rngs), jnp.tanh, Dense(6, n_outputs, rngs=rngs)
    )


SMALL = TINY | {
    "model": two_layers,
    "n_iter": 1,
    "expected_batch_size": None,
    "max_group_size": 3,
}


def norm_of(vectors):
    return max(float(np.linalg.norm(vector)) for vector in vectors)
