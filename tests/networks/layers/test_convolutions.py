"""What convolutions see, and pooling."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from privfeat.networks.layers import Conv, DepthwiseConv, max_pool
from tests.combinations import few


@pytest.mark.parametrize(
    ("size", "stride"), few(1, [(2, None), (3, 2), (2, 1), (3, 4)])
)
def test_max_pool_is_that_of_jax_there_and_back(size, stride):
    x = jax.random.normal(jax.random.key(0), (2, 8, 7, 3))

    def windows(x):
        steps = (1, stride or size, stride or size, 1)
        return jax.lax.reduce_window(
            x, -jnp.inf, jax.lax.max, (1, size, size, 1), steps, "VALID"
        )

    found, back = jax.vjp(partial(max_pool, size=size, stride=stride), x)
    expected, expected_back = jax.vjp(windows, x)
    np.testing.assert_array_equal(found, expected)
    cotangent = jax.random.normal(jax.random.key(1), found.shape)
    np.testing.assert_allclose(
        back(cotangent)[0], expected_back(cotangent)[0], rtol=1e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize("stacked", [False, True])
def test_gradients_of_kernels_are_the_same_by_both_ways(stacked, rngs, monkeypatch):
    """One convolution per record on a CPU, one ``vmap`` elsewhere."""
    if stacked:
        monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    layer = Conv(2, 3, 3, stride=2, rngs=rngs)
    draw = np.random.default_rng(0)
    a = jnp.asarray(draw.normal(size=(2, 1, 5, 4, 2)), jnp.float32)
    e = jnp.asarray(draw.normal(size=(2, 1, 3, 2, 3)), jnp.float32)
    found = layer._kernel_gradients(a, e)
    assert isinstance(found, list) is not stacked
    for number in range(2):
        expected = jax.grad(
            lambda kernel, i=number: jnp.sum(layer._convolve(a[i], kernel) * e[i])
        )(layer.kernel[...])
        np.testing.assert_allclose(found[number], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("padding", ["SAME", "VALID", ((1, 1), (0, 2))])
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_convolution_is_a_grouped_one(padding, stride, rngs):
    layer = DepthwiseConv(3, 3, stride=stride, padding=padding, rngs=rngs)
    layer.bias[...] = jnp.arange(3.0)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(2, 6, 7, 3)), jnp.float32)
    expected = jax.lax.conv_general_dilated(
        x,
        layer.kernel[...],
        (stride, stride),
        padding,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=3,
    )
    np.testing.assert_allclose(
        layer(x), expected + layer.bias[...].reshape(1, 1, 1, 3), atol=1e-5
    )
