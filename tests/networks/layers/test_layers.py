"""What each layer says of every record's gradient, against differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from privfeat.networks.engine.network import Network
from privfeat.networks.layers import (
    Conv,
    Dense,
    DepthwiseConv,
    Norm,
    Offset,
    Scale,
    StandardizedConv,
)
from privfeat.networks.layers.basic import recorded
from tests.networks.tiny import UNOPTIMIZED

LAYERS = {
    "dense": ((2,), lambda rngs: Dense(2, 3, rngs=rngs)),
    "norm": ((2, 3, 4), lambda rngs: Norm(4, groups=2)),
    "scale": ((4,), lambda rngs: Scale(4, initial=0.7)),
    "offset": ((3, 4), lambda rngs: Offset((3, 4), rngs=rngs)),
    "convolution": ((4, 3, 2), lambda rngs: Conv(2, 3, 3, stride=2, rngs=rngs)),
    "of points": ((3, 2, 4), lambda rngs: Conv(4, 3, 1, stride=2, rngs=rngs)),
    "of one channel": ((4, 3, 1), lambda rngs: Conv(1, 3, 2, rngs=rngs)),
    "of channels": ((5, 4, 3), lambda rngs: DepthwiseConv(3, 3, stride=2, rngs=rngs)),
    "standardized": (
        (4, 3, 2),
        lambda rngs: StandardizedConv(
            2, 3, 3, padding="VALID", gamma=1.3, initial_gain=0.8, rngs=rngs
        ),
    ),
}


FORMED, GRAM = 0.0, 10.0**9  # every gradient, or every norm by Gram matrices
HAVE_GRAM = ("dense", "convolution", "of points", "of one channel")


@pytest.mark.parametrize(
    ("name", "cost"),
    [(name, FORMED) for name in LAYERS] + [(name, GRAM) for name in HAVE_GRAM],
)
def test_layers_state_norms_and_sums_of_the_gradients_of_records(name, cost, plant):
    """Of two records with two copies each; the second weighs three times as much."""
    plant("slack for cancellation", 0.0)
    plant("cost of keeping gradients", cost)
    shape, make = LAYERS[name]
    layer = make(nnx.Rngs(params=jax.random.key(0)))
    network, draw = Network(layer), np.random.default_rng(0)
    x = jnp.asarray(draw.normal(size=(4, *shape)), jnp.float32)
    taps = jax.eval_shape(network, network.initial, x)
    e = jnp.asarray(draw.normal(size=taps.shape), jnp.float32)

    def stated(x, e):
        _, tape = recorded(network.bind(network.initial), x, {"": jnp.zeros_like(e)})
        found = tape.contributions(tape.inputs, {"": e}, 2)
        weights = jnp.array([1.0, 3.0])
        return {n: (f.squared_norms, f.weighted_sum(weights)) for n, f in found.items()}

    def gradient(x, e):
        return jax.grad(lambda p: jnp.sum(network(p, x) * e))(network.initial)

    def differentiated(x, e):
        first, second = gradient(x[:2], e[:2]), gradient(x[2:], e[2:])
        return {
            n: (
                jnp.stack([jnp.sum(jnp.square(g[n])) for g in (first, second)]),
                first[n] + 3.0 * second[n],
            )
            for n in first
        }

    found, expected = (
        jax.jit(function).lower(x, e).compile(compiler_options=UNOPTIMIZED)(x, e)
        for function in (stated, differentiated)
    )
    assert found.keys() == expected.keys()
    for leaf, (norms, total) in expected.items():
        assert float(norms.min()) > 0.0
        np.testing.assert_allclose(found[leaf][0], norms, rtol=1e-4, err_msg=leaf)
        np.testing.assert_allclose(found[leaf][1], total, atol=1e-4, err_msg=leaf)
