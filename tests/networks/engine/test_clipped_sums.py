"""The fast engine against ``vmap(grad)`` and against jax-privacy, on every network."""

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from privfeat.networks.engine.clipping import CLIP_FACTORS, CLIP_STYLES, MARGIN
from privfeat.networks.engine.losses import cross_entropy
from privfeat.networks.engine.network import Network
from privfeat.networks.layers import Dense
from privfeat.networks.layers.convolutions import DepthwiseConv, StandardizedConv
from tests.networks.engine.modules import EveryLayer, Plain, assert_same
from tests.networks.small import NETWORKS


class EveryConv(nnx.Module):
    """Convolutions per channel and with standardized kernels, on odd sides as well."""

    def __init__(self, rngs):
        self.standard = StandardizedConv(
            2, 4, 3, stride=2, padding=((1, 1), (1, 1)), gamma=1.3, rngs=rngs
        )
        self.standard.gain[...] = jnp.linspace(-1.0, 2.0, 4)
        self.channel = DepthwiseConv(4, 3, padding=((1, 1), (0, 2)), rngs=rngs)
        self.half = DepthwiseConv(4, 3, stride=2, rngs=rngs)
        self.point = StandardizedConv(4, 3, 1, initial_gain=0.5, rngs=rngs)
        self.head = Dense(3, 4, rngs=rngs)

    def __call__(self, x):
        x = jax.nn.relu6(self.channel(jnp.tanh(self.standard(x))))
        x = self.point(jnp.tanh(self.half(x)))
        return self.head(jnp.mean(jnp.tanh(x), axis=(1, 2)))


@pytest.fixture
def without_slack(plant):
    """Leave out the slack for cancellation, which lowers factors by more than rounding.

    That it only lowers them is a test of its own.
    """
    plant("slack for cancellation", 0.0)


@pytest.fixture(params=[0, 10**9], ids=["formed", "gram"])
def strategy(request, without_slack, plant):
    """Every gradient formed, or every norm taken from Gram matrices."""
    plant("cost of keeping gradients", request.param)


_SLOW = (
    "bottleneck",
    "mobilenet",
    "nf_resnet",
    "resnet",
    "simplevgg",
    "wrn_norm_first",
)


@pytest.mark.slow
@pytest.mark.usefixtures("without_slack")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in _SLOW else ())
        for name in NETWORKS
    ],
)
def test_fast_engine_equals_reference_on_every_network(name, rngs, make_batch, sum_of):
    shape, make = NETWORKS[name]
    module, batch = make(rngs), make_batch(shape)
    assert_same(sum_of(module, batch, "fast"), sum_of(module, batch, "reference"))


@pytest.mark.usefixtures("strategy")
@pytest.mark.parametrize("copies", [1, 2])
def test_fast_engine_equals_reference_for_every_layer(rngs, make_batch, sum_of, copies):
    module, batch = EveryLayer(rngs), make_batch((4, 4, 1), copies=copies)
    assert_same(sum_of(module, batch, "fast"), sum_of(module, batch, "reference"))


@pytest.mark.slow
@pytest.mark.parametrize("copies", [1, 2])
def test_fast_engine_equals_reference_for_every_convolution(
    rngs, make_batch, sum_of, copies
):
    module, batch = EveryConv(rngs), make_batch((7, 5, 2), copies=copies)
    fast, reference = (sum_of(module, batch, e) for e in ("fast", "reference"))
    assert_same(fast, reference)
    for name, leaf in reference.items():  # each compared, not only the largest
        assert_same({name: fast[name]}, {name: leaf}, tol=1e-4)


@pytest.mark.parametrize("style", CLIP_STYLES)
@pytest.mark.parametrize("factor", CLIP_FACTORS)
def test_engines_agree_for_every_factor_and_style(
    factor, style, small_mlp, make_batch, sum_of
):
    batch = make_batch((5,))
    options = {"factor": factor, "style": style, "clip_norm": 2.0}
    fast = sum_of(small_mlp, batch, "fast", **options)
    assert_same(fast, sum_of(small_mlp, batch, "reference", **options))


# jax-privacy calls what optax has renamed
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated")
def test_reference_equals_jax_privacy(rngs, make_batch, sum_of):
    clipping = pytest.importorskip("jax_privacy.clipping")
    module, (inputs, labels) = Plain(rngs), make_batch((5,), n=6)
    network = Network(module)

    def loss(parameters, inputs, labels):
        return jnp.sum(cross_entropy(network(parameters, inputs[:, 0]), labels))

    theirs = clipping.clipped_grad(loss, l2_clip_norm=0.1, batch_argnums=(1, 2))
    expected = theirs(network.initial, inputs, labels)
    ours = sum_of(module, (inputs, labels), "reference")
    lowered = {name: leaf * (1.0 - MARGIN) for name, leaf in expected.items()}
    assert_same(ours, lowered)
