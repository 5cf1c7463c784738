"""Groups of blocks of a network that stay as they are."""

import pytest
from flax import nnx

from privfeat.networks.engine.network import Network
from privfeat.networks.models import MobileNetV2, ViT

STAGES = (((1, 8, 1, 1), (6, 8, 2, 2)), ((6, 16, 1, 2),))


@pytest.fixture
def mobilenet(rngs):
    return MobileNetV2((32, 32, 3), 5, stages=STAGES, n_features=24, rngs=rngs)


@pytest.mark.slow
@pytest.mark.parametrize(("frozen", "moving"), [(1, {0, 1, 2}), (2, {1, 2}), (3, {2})])
def test_groups_of_blocks_stay(rngs, frozen, moving):
    module = ViT((4, 4, 1), 2, dim=6, depth=3, n_heads=1, rngs=rngs)
    assert module.group_sizes == (0, 1, 1, 1)
    network = Network(module)
    kept = network.frozen_names(frozen)
    assert {"token/value", "positions/value", "patches/kernel"} <= kept
    blocks = {
        int(n.split("/")[1]) for n in set(network.initial) - kept if "blocks" in n
    }
    assert blocks == moving
    assert not network.frozen_names(0)


@pytest.mark.slow
def test_last_block_is_all_that_moves_before_the_head(rngs, mobilenet):
    """The norm behind it moves as well."""
    vit = Network(ViT((4, 4, 1), 2, dim=6, depth=11, n_heads=1, rngs=rngs))
    for network, first in ((vit, {"blocks/10", "norm"}), (mobilenet, {"blocks/4"})):
        known = network if isinstance(network, Network) else Network(network)
        moving = set(known.initial) - known.frozen_names("all_but_last_block")
        found = {"/".join(n.split("/")[: 2 if "blocks" in n else 1]) for n in moving}
        assert found == {"head", *first}
    plain = Network(nnx.Sequential(nnx.Linear(2, 2, rngs=rngs)))
    with pytest.raises(ValueError, match="all_but_last_block"):
        plain.frozen_names("all_but_last_block")


def test_convolution_before_the_head_is_of_the_last_group(mobilenet):
    assert mobilenet.group_sizes == (3, 2)
    network = Network(mobilenet)
    moving = set(network.initial) - network.frozen_names(1)
    assert {name.rpartition("/")[0] for name in moving} == {
        "head",
        "blocks/3/expand",
        "blocks/3/depthwise",
        "blocks/3/project",
        "blocks/4/conv",
    }
