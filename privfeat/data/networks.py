"""Networks that both commands know: one name, one architecture, one kind of pixels.

The extractor runs them by timm, ``privfeat train`` by its own layers. Weights fit one
padding and one scale of the pixels; with others features are silently worse.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

Channels = tuple[float, float, float]
_HALF: Channels = (0.5, 0.5, 0.5)
_IMAGENET: tuple[Channels, Channels] = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


class KnownNetwork(NamedTuple):
    """A network, and the pixels that its public weights were made for."""

    timm: str  # its name in timm
    model_kwargs: Mapping[str, Any] = MappingProxyType({})  # of timm.create_model
    mean: Channels = _HALF  # of each channel, for pixels in [0, 1]
    std: Channels = _HALF
    interpolation: str = "bicubic"  # by which images are resized
    published: bool = True  # else timm has no weights of exactly this network


# Weights of ViT and BiT as timm's default tags have them; of MobileNetV2 with the
# padding of TensorFlow, as Keras scales pixels.
KNOWN_NETWORKS: Mapping[str, KnownNetwork] = MappingProxyType(
    {
        "mobilenetv2_100": KnownNetwork("mobilenetv2_100", {}, *_IMAGENET),
        "mobilenetv2_100_same": KnownNetwork(
            "mobilenetv2_100", {"pad_type": "same"}, published=False
        ),
        "nf_resnet50": KnownNetwork("nf_resnet50", {}, *_IMAGENET),
        "resnetv2_50x1_bit": KnownNetwork("resnetv2_50x1_bit"),
        "vit_base": KnownNetwork("vit_base_patch16_224"),
        "vit_small": KnownNetwork("vit_small_patch16_224"),
        "vit_tiny": KnownNetwork("vit_tiny_patch16_224"),
    }
)
