"""Networks of layers of every kind."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from privfeat.networks.layers import Conv, Dense, Embed, Norm, Scale


class EveryLayer(nnx.Module):
    """Each layer once, bytes looked up in a table first."""

    def __init__(self, rngs):
        self.embed = Embed(5, 3, rngs=rngs)
        self.conv = Conv(3, 4, 3, stride=2, use_bias=False, rngs=rngs)
        self.group = Norm(4, groups=2)
        self.gains = Scale(4, initial=0.7)
        self.dense = Dense(4, 6, use_bias=False, rngs=rngs)
        self.layer = Norm(6, groups=None)
        self.gain = Scale(1, initial=1.3)
        self.head = Dense(6, 4, rngs=rngs)

    def __call__(self, x):
        ids = jnp.clip(jnp.floor(jnp.abs(x[..., 0]) * 2), 0, 4).astype(jnp.int32)
        n, height, width = ids.shape
        x = self.embed(ids.reshape(n, -1)).reshape(n, height, width, 3)
        x = self.gains(jax.nn.relu(self.group(self.conv(x))))
        x = self.gain(self.layer(self.dense(x)))
        return self.head(jnp.mean(jnp.tanh(x), axis=(1, 2)))


class Plain(nnx.Module):
    """A network of flax's own layers."""

    def __init__(self, rngs):
        self.hidden = nnx.Linear(5, 6, rngs=rngs)
        self.head = nnx.Linear(6, 4, rngs=rngs)

    def __call__(self, x):
        return self.head(jnp.tanh(self.hidden(x)))


class Twice(nnx.Module):
    """A network that uses one layer twice."""

    def __init__(self, rngs):
        self.layer = Dense(4, 4, rngs=rngs)

    def __call__(self, x):
        return self.layer(jnp.tanh(self.layer(x)))


def assert_same(left, right, tol=1e-5):
    assert left.keys() == right.keys()
    scale = max(float(jnp.max(jnp.abs(leaf))) for leaf in right.values())
    for name, leaf in right.items():
        np.testing.assert_allclose(
            left[name], leaf, atol=tol * scale, rtol=0.0, err_msg=name
        )
