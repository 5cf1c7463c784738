"""Small networks and batches for all tests of the trainers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from privfeat.trainers.engine import ClipRule, clipped_sum
from privfeat.trainers.losses import cross_entropy
from privfeat.trainers.model import Network

# Nothing here is timed, so nothing has to be fast but the compiler.
_UNOPTIMIZED = {"xla_backend_optimization_level": 0}


@pytest.fixture
def rngs():
    return nnx.Rngs(params=jax.random.key(0))


@pytest.fixture
def make_batch():
    """Return inputs of shape (n, copies, ...) and labels of four classes."""

    def make(shape, n=3, copies=1, scale=1.0):
        draw = np.random.default_rng(7)
        inputs = draw.normal(size=(n, copies, *shape), scale=scale)
        labels = draw.integers(0, 4, n)
        return jnp.asarray(inputs, jnp.float32), jnp.asarray(labels)

    return make


@pytest.fixture
def sum_of():
    """Return the clipped sum by one engine."""

    def compute(module, batch, engine, *, clip_norm=0.1, valid=None, **options):
        frozen = options.pop("frozen", frozenset())
        network, (inputs, labels) = Network(module), batch
        valid = jnp.ones(len(inputs), bool) if valid is None else jnp.asarray(valid)
        rule = ClipRule(**options)
        function = clipped_sum(network, cross_entropy, rule, engine, frozen)
        arguments = (network.initial, inputs, labels, valid, jnp.float32(clip_norm))
        lowered = function.lower(*arguments)
        return lowered.compile(compiler_options=_UNOPTIMIZED)(*arguments)

    return compute


@pytest.fixture
def norm_of():
    """Return the norm of a gradient in all its parameters together."""

    def compute(gradient):
        leaves = [np.asarray(leaf, np.float64).ravel() for leaf in gradient.values()]
        return float(np.linalg.norm(np.concatenate(leaves)))

    return compute
