"""Networks by name, made of the layers that the fast engine knows.

>>> "wrn_16_4" in NETWORKS
True
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from flax import nnx

from privfeat.networks.models.mobilenet import MobileNetV2
from privfeat.networks.models.nf_resnet import NFResNet
from privfeat.networks.models.resnet import ResNet, WideResNet
from privfeat.networks.models.small import (
    MLP,
    SampleConvNet,
    SimpleVGG,
    SmallAlexNet,
)
from privfeat.networks.models.vit import ViT

__all__ = [
    "MLP",
    "NETWORKS",
    "MobileNetV2",
    "NFResNet",
    "ResNet",
    "SampleConvNet",
    "SimpleVGG",
    "SmallAlexNet",
    "ViT",
    "WideResNet",
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
        "small_alexnet": SmallAlexNet,
        "vit_base": partial(ViT, dim=768, n_heads=12),
        "vit_small": partial(ViT, dim=384, n_heads=6),
        "vit_tiny": ViT,
        "wrn_16_4": WideResNet,
        "wrn_16_4_norm_first": partial(WideResNet, order="conv_norm_relu"),
    }
)
