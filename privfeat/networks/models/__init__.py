"""Networks by name, made of the layers that the fast engine knows.

>>> "wrn_16_4" in NETWORKS
True
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import jax
from flax import nnx

from privfeat.networks.layers.basic import by_name
from privfeat.networks.models.convnets import SampleConvNet, SimpleVGG, parse_simple_vgg
from privfeat.networks.models.mlp import MLP
from privfeat.networks.models.mobilenet import MobileNetV2
from privfeat.networks.models.nf_resnet import NFResNet
from privfeat.networks.models.resnet import ResNet, WideResNet
from privfeat.networks.models.vit import ViT

__all__ = [
    "MLP",
    "NETWORKS",
    "MobileNetV2",
    "NFResNet",
    "ResNet",
    "SampleConvNet",
    "SimpleVGG",
    "ViT",
    "WideResNet",
    "build",
    "shapes_of",
]

# Not to be changed: named networks are trusted to keep records apart.
NETWORKS: Mapping[str, Callable[..., nnx.Module]] = MappingProxyType(
    {
        "mlp": MLP,
        "mobilenetv2_100": MobileNetV2,
        "mobilenetv2_100_same": partial(MobileNetV2, padding="SAME"),
        "nf_resnet50": NFResNet,
        "resnet18": ResNet,
        "resnet50": partial(ResNet, depths=(3, 4, 6, 3), bottleneck=True),
        "resnetv2_50x1_bit": partial(ResNet, depths=(3, 4, 6, 3), bottleneck=True),
        "sample_convnet": SampleConvNet,
        "vit_base": partial(ViT, dim=768, n_heads=12),
        "vit_small": partial(ViT, dim=384, n_heads=6),
        "vit_tiny": ViT,
        "wrn_16_4": WideResNet,
        "wrn_16_4_norm_first": partial(WideResNet, order="conv_norm_relu"),
    }
)


def build(
    name: str, input_shape: tuple[int, ...], n_outputs: int, *, rngs: nnx.Rngs
) -> nnx.Module:
    """Return a fresh network for records of ``input_shape``.

    ``name`` is a key of ``NETWORKS``, or ``simpleVGG-...`` (see `SimpleVGG`). A shape
    is (height, width, channels); for ``"mlp"`` any. ``rngs`` has the key of the initial
    parameters as its stream ``params``. ValueError if there is no such network, or it
    does not take records of that shape.
    """
    if name != "mlp" and len(input_shape) != 3:
        raise ValueError(
            f"records must have shape (height, width, channels) for model={name!r}, "
            f"got {input_shape}."
        )
    if name.lower().startswith("simplevgg"):
        make: Callable[..., nnx.Module] = partial(SimpleVGG, **parse_simple_vgg(name))
    elif name in NETWORKS:
        make = NETWORKS[name]
    else:
        raise ValueError(
            f"model must be one of {', '.join(NETWORKS)} or a simpleVGG, got {name!r}."
        )
    with jax.enable_x64(False):  # of float32, whatever the process computes in
        return make(input_shape, n_outputs, rngs=rngs)


def shapes_of(
    name: str, input_shape: tuple[int, ...], n_outputs: int
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the parameters of `build`, by name; nothing is computed."""
    made = nnx.eval_shape(
        lambda: build(name, input_shape, n_outputs, rngs=nnx.Rngs(params=0))
    )
    leaves = by_name(nnx.to_flat_state(nnx.state(made)))
    return {name: tuple(leaf.shape) for name, leaf in leaves.items()}
