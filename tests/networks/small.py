"""Every kind of network that has a name, small: shapes of records, and makers."""

from privfeat.networks.models import MobileNetV2, NFResNet, ResNet, ViT, WideResNet
from privfeat.networks.weights import build

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
    "small_alexnet": (
        (7, 7, 1),
        lambda r: build("small_alexnet", (7, 7, 1), 4, rngs=r),
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
