"""The fast engine against ``vmap(grad)`` and against jax-privacy, on every network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from privfeat.networks.engine.clipped_sums import dry_run
from privfeat.networks.engine.clipping import (
    CLIP_FACTORS,
    CLIP_STYLES,
    MARGIN,
    clip_factors,
)
from privfeat.networks.engine.losses import cross_entropy
from privfeat.networks.engine.network import Network
from privfeat.networks.layers import Conv, Dense, Embed, Norm, Scale, contributions
from privfeat.networks.layers.basic import FastEngineError
from privfeat.networks.layers.convolutions import DepthwiseConv, StandardizedConv
from privfeat.networks.models import (
    MobileNetV2,
    NFResNet,
    ResNet,
    ViT,
    WideResNet,
    build,
)

RGB = (8, 8, 3)
STAGES = (((1, 4, 1, 1),), ((2, 6, 2, 2),))


def nf_resnet(rngs):
    """Return a small network with gains that are not zero."""
    network = NFResNet(RGB, 4, depths=(1, 1), width=4, rngs=rngs)
    for block in network.blocks:
        block.convolutions[2].gain[...] += 0.5
    return network


NETWORKS = {
    "mlp": ((5,), lambda r: build("mlp", (5,), 4, rngs=r)),
    "sample_convnet": (
        (14, 14, 1),
        lambda r: build("sample_convnet", (14, 14, 1), 4, rngs=r),
    ),
    "simplevgg": (RGB, lambda r: build("simpleVGG-4(2)-8(1)-16", RGB, 4, rngs=r)),
    "resnet": (RGB, lambda r: ResNet(RGB, 4, depths=(1, 1), width=8, rngs=r)),
    "bottleneck": (
        RGB,
        lambda r: ResNet(RGB, 4, depths=(1, 1), width=4, bottleneck=True, rngs=r),
    ),
    "wrn": (RGB, lambda r: WideResNet(RGB, 4, depth=10, widening=1, rngs=r)),
    "wrn_norm_first": (
        RGB,
        lambda r: WideResNet(
            RGB, 4, depth=10, widening=1, order="conv_norm_relu", rngs=r
        ),
    ),
    "nf_resnet": (RGB, nf_resnet),
    "mobilenet": (
        RGB,
        lambda r: MobileNetV2(RGB, 4, stages=STAGES, n_features=8, rngs=r),
    ),
    "vit": (
        RGB,
        lambda r: ViT(RGB, 4, dim=12, depth=1, n_heads=3, patch=2, rngs=r),
    ),
}


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


@pytest.fixture
def without_slack(monkeypatch):
    """Leave out the slack for cancellation, which lowers factors by more than rounding.

    That it only lowers them is a test of its own.
    """
    monkeypatch.setattr(contributions, "GRAM_SLACK", 0.0)


@pytest.fixture(params=[0, 10**9], ids=["formed", "gram"])
def strategy(request, without_slack, monkeypatch):
    """Every gradient formed, or every norm taken from Gram matrices."""
    monkeypatch.setattr(contributions, "_COST_OF_KEEPING", request.param)


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


def test_frozen_parameters_get_no_gradient_and_do_not_count(
    small_mlp, make_batch, sum_of
):
    batch = make_batch((5,))
    frozen = frozenset(n for n in Network(small_mlp).initial if "layers/1" not in n)
    sums = [sum_of(small_mlp, batch, e, frozen=frozen) for e in ("fast", "reference")]
    assert sorted(sums[0]) == ["layers/1/bias", "layers/1/kernel"]
    assert_same(*sums)


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_empty_slots_do_not_count(engine, small_mlp, make_batch, sum_of):
    inputs, labels = make_batch((5,))
    filled = inputs.at[2].set(jnp.nan)
    padded = sum_of(small_mlp, (filled, labels), engine, valid=[True, True, False])
    assert_same(padded, sum_of(small_mlp, (inputs[:2], labels[:2]), engine))


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
def test_record_that_overflows_is_left_out(engine, value, rngs, make_batch, sum_of):
    module, (inputs, labels) = EveryDense(rngs), make_batch((4, 5))
    spoilt = inputs.at[1].set(value)
    total = sum_of(module, (spoilt, labels), engine)
    others = sum_of(module, (inputs[::2], labels[::2]), engine)
    assert_same(total, others)


class EveryDense(nnx.Module):
    """Dense layers with and without positions, and nothing that bounds values."""

    def __init__(self, rngs):
        self.hidden = Dense(5, 6, rngs=rngs)
        self.head = Dense(6, 4, rngs=rngs)

    def __call__(self, x):
        return self.head(jnp.mean(jnp.square(self.hidden(x)), axis=1))


def test_slack_only_lowers_what_a_record_counts(
    rngs, make_batch, sum_of, norm_of, monkeypatch
):
    module, batch = EveryLayer(rngs), make_batch((4, 4, 1), n=1)
    with_slack = norm_of(sum_of(module, batch, "fast", clip_norm=1e-3))
    monkeypatch.setattr(contributions, "GRAM_SLACK", 0.0)
    without = norm_of(sum_of(module, batch, "fast", clip_norm=1e-3))
    assert 0.999 * without < with_slack < without <= 1e-3


@pytest.mark.parametrize(("n_positions", "n_inputs"), [(1, 4), (2, 100)])
@pytest.mark.parametrize("factor", CLIP_FACTORS)
def test_numbers_whose_squares_are_flushed_to_zero_are_bounded(
    n_positions, n_inputs, factor
):
    """Cotangents below the root of the smallest float32 beside huge inputs."""
    a = jnp.zeros((1, n_positions, n_inputs)).at[..., 0].set(1.5e19)
    e = jnp.full((1, n_positions, 1000), 1e-19)
    found = contributions.dense(a, e)
    norm = jnp.sqrt(found.squared_norms + found.slack)
    total = found.weighted_sum(clip_factors(norm, 1.0, factor))
    assert float(jnp.linalg.norm(found.weighted_sum(jnp.ones(1)))) > 40.0
    assert float(jnp.linalg.norm(total)) <= 1.0


def test_normalize_does_not_enlarge_what_it_cannot_measure():
    a = jnp.full((1, 1, 100), 100.0)
    e = jnp.full((1, 1, 1000), 5e-20).at[0, 0, 0].set(4e-19)
    found = contributions.dense(a, e)
    total = found.weighted_sum(
        clip_factors(jnp.sqrt(found.squared_norms), 1.0, "normalize")
    )
    assert np.linalg.norm(np.asarray(total, np.float64)) <= 1.0


def test_records_do_not_touch_each_other(rngs, make_batch, sum_of):
    """The sum over a batch is the sum over its records alone."""
    module, (inputs, labels) = EveryLayer(rngs), make_batch((4, 4, 1), n=3)
    whole = sum_of(module, (inputs, labels), "fast")
    alone = [
        sum_of(module, (inputs[i : i + 1], labels[i : i + 1]), "fast") for i in range(3)
    ]
    assert_same(whole, {name: sum(part[name] for part in alone) for name in whole})


def test_fast_engine_refuses_layers_it_does_not_know(rngs, make_batch, sum_of):
    with pytest.raises(FastEngineError, match="of another layer"):
        sum_of(Plain(rngs), make_batch((5,)), "fast")


def test_fast_engine_refuses_a_layer_that_is_used_twice(rngs, make_batch, sum_of):
    with pytest.raises(FastEngineError, match="'layer' twice"):
        sum_of(Twice(rngs), make_batch((4,)), "fast")
    with pytest.raises(FastEngineError, match="used once"):
        dry_run(Network(Twice(rngs)), jnp.zeros((1, 4))).check_knows([])


def test_batch_norm_is_refused_by_name(rngs):
    module = nnx.Sequential(nnx.Linear(4, 4, rngs=rngs), nnx.BatchNorm(4, rngs=rngs))
    with pytest.raises(ValueError, match="batch norm 'layers/1'"):
        Network(module)


def test_random_state_is_refused_by_name(rngs):
    module = nnx.Sequential(nnx.Dropout(0.5, rngs=nnx.Rngs(0)))
    with pytest.raises(ValueError, match="nothing but parameters"):
        Network(module)
