"""Sizes of the networks against the papers and timm, and what they refuse."""

import math

import jax
import pytest
from flax import nnx

from privfeat.networks.layers.basic import by_name
from privfeat.networks.models import NETWORKS
from privfeat.networks.weights import build
from tests.combinations import few


def count_parameters(name, shape, n_outputs):
    """Count without making any number."""

    def make():
        return build(name, shape, n_outputs, rngs=nnx.Rngs(params=jax.random.key(0)))

    state = nnx.state(nnx.eval_shape(make))
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(state))


@pytest.mark.parametrize(
    "name", few(3, [*NETWORKS, "simpleVGG-32(2)-64(2)-128(2)-128"])
)
def test_networks_are_of_float32_where_the_process_has_64_bits(name):
    def scores():
        made = build(name, (64, 64, 3), 4, rngs=nnx.Rngs(params=jax.random.key(0)))
        return made(jax.numpy.zeros((1, 64, 64, 3), "float32"))

    with jax.enable_x64(True):
        assert jax.eval_shape(scores).dtype == "float32"


@pytest.mark.parametrize(
    ("name", "shape", "n_outputs", "size"),
    few(
        3,
        [
            ("sample_convnet", (28, 28, 1), 10, 26_010),  # Bu et al. 2023, C.1
            ("simpleVGG-32(2)-64(2)-128(2)-128", (32, 32, 3), 10, 550_570),
            # two convolutions of 64, and 3,136 x 384 x 192 x 10
            ("small_alexnet", (32, 32, 3), 10, 1_387_786),
            # timm's vit_tiny_patch16_224 and so on, and resnetv2_50
            ("vit_tiny", (224, 224, 3), 1000, 5_717_416),
            ("vit_small", (224, 224, 3), 1000, 22_050_664),
            ("vit_base", (224, 224, 3), 1000, 86_567_656),
            ("resnet50", (224, 224, 3), 1000, 25_549_352),
            ("nf_resnet50", (224, 224, 3), 1000, 25_557_032),
            # 3,504,872 of timm less one for every channel of its 52 batch norms
            ("mobilenetv2_100", (224, 224, 3), 1000, 3_487_816),
        ],
    ),
)
def test_networks_have_the_published_sizes(name, shape, n_outputs, size):
    assert count_parameters(name, shape, n_outputs) == size


@pytest.mark.slow
def test_names_of_parameters_are_different():
    module = build("wrn_16_4", (8, 8, 3), 2, rngs=nnx.Rngs(params=jax.random.key(0)))
    leaves = nnx.to_flat_state(nnx.state(module))
    names = by_name(leaves)
    assert len(names) == len(leaves)
    assert "blocks/0/conv1/kernel" in names


@pytest.mark.parametrize(
    "name", ["no_such", "simpleVGG", "simpleVGG-32-64", "simpleVGG-4(101)-4"]
)
def test_unknown_names_are_refused(name, rngs):
    with pytest.raises(ValueError, match=r"must be (one of|named)|at most 100"):
        build(name, (32, 32, 3), 10, rngs=rngs)


@pytest.mark.parametrize("name", sorted(set(NETWORKS) - {"mlp"}))
def test_rows_are_refused_by_networks_for_images(name, rngs):
    with pytest.raises(ValueError, match="height, width, channels"):
        build(name, (32,), 10, rngs=rngs)


@pytest.mark.slow
def test_images_that_are_too_small_are_refused(rngs):
    with pytest.raises(ValueError, match="at least 8"):
        build("simpleVGG-4(1)-4(1)-4(1)-8", (7, 7, 3), 10, rngs=rngs)
    with pytest.raises(ValueError, match="at least 14"):
        build("sample_convnet", (13, 13, 1), 10, rngs=rngs)
    with pytest.raises(ValueError, match="at least 7"):
        build("small_alexnet", (9, 6, 3), 10, rngs=rngs)
    with pytest.raises(ValueError, match="multiples of 4"):
        build("vit_tiny", (30, 30, 3), 10, rngs=rngs)


def test_networks_that_both_commands_know_have_one_name():
    from privfeat.data.networks import KNOWN_NETWORKS

    assert KNOWN_NETWORKS.keys() <= NETWORKS.keys()
