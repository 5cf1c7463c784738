"""MobileNetV2 with its batch norm folded into the convolutions."""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from privfeat.networks.layers import Conv, Dense, Padding
from privfeat.networks.layers.convolutions import DepthwiseConv
from privfeat.networks.models.resnet import same_padding

# Groups of stages: expansion, channels, blocks, stride of the first block.
Stages = tuple[tuple[tuple[int, int, int, int], ...], ...]
_STAGES: Stages = (
    ((1, 16, 1, 1), (6, 24, 2, 2)),
    ((6, 32, 3, 2),),
    ((6, 64, 4, 2), (6, 96, 3, 1)),
    ((6, 160, 3, 2), (6, 320, 1, 1)),
)

_PADDING = same_padding(3)


class InvertedResidual(nnx.Module):
    """1 x 1 convolution to more channels, one per channel, 1 x 1 to few.

    Beside a shortcut, where the shape stays; without the first for expansion 1.
    """

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        *,
        expansion: int,
        stride: int,
        padding: Padding,
        rngs: nnx.Rngs,
    ) -> None:
        width = expansion * n_inputs
        self.expand = (
            Conv(n_inputs, width, 1, rngs=rngs) if expansion > 1 else nnx.data(None)
        )
        self.depthwise = DepthwiseConv(
            width, 3, stride=stride, padding=padding, rngs=rngs
        )
        self.project = Conv(width, n_outputs, 1, rngs=rngs)
        self.residual = stride == 1 and n_inputs == n_outputs

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n i j o"]:
        """Return the outputs, which no activation follows."""
        branch = x if self.expand is None else jax.nn.relu6(self.expand(x))
        branch = self.project(jax.nn.relu6(self.depthwise(branch)))
        return x + branch if self.residual else branch


class LastConv(nnx.Module):
    """1 x 1 convolution to the features that the head reads."""

    def __init__(self, n_inputs: int, n_outputs: int, *, rngs: nnx.Rngs) -> None:
        self.conv = Conv(n_inputs, n_outputs, 1, rngs=rngs)

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n h w o"]:
        """Return the outputs."""
        return jax.nn.relu6(self.conv(x))


class MobileNetV2(nnx.Module):
    """MobileNetV2 (Sandler et al. 2018): ``mobilenetv2_100`` of timm, no batch norm.

    Batch norm that uses statistics of a pretraining set is one scale and one offset per
    channel, whatever the batch, and `load_timm_weights` multiplies them into the
    convolution before: **the statistics stay those of the pretraining set**, and no
    record touches another. What is trained are folded kernels and biases. A fresh
    network has no norm of any kind and trains poorly: start from weights.

    The last of four groups of blocks holds the convolution before the head. Images have
    sides of at least 64, so that more than four positions are left at the end. The
    ``padding`` is the same on all sides, as timm has it, or ``"SAME"``, as TensorFlow
    has it, which timm calls ``pad_type="same"``: with stride 2 the left and upper
    margins are smaller.
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        n_outputs: int,
        *,
        stages: Stages = _STAGES,
        n_features: int = 1280,
        padding: Padding = _PADDING,
        rngs: nnx.Rngs,
    ) -> None:
        channels = 32
        self.stem = Conv(
            image_shape[2], channels, 3, stride=2, padding=padding, rngs=rngs
        )
        blocks: list[nnx.Module] = []
        for expansion, width, depth, stride in sum(stages, ()):
            for place in range(depth):
                block = InvertedResidual(
                    channels,
                    width,
                    expansion=expansion,
                    stride=1 if place else stride,
                    padding=padding,
                    rngs=rngs,
                )
                blocks.append(block)
                channels = width
        blocks.append(LastConv(channels, n_features, rngs=rngs))
        *sizes, last = (sum(depth for _, _, depth, _ in group) for group in stages)
        self.blocks = nnx.List(blocks)
        self.stages = stages
        self.group_sizes = (*sizes, last + 1)
        self.head = Dense(n_features, n_outputs, rngs=rngs)

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n m"]:
        """Return the scores."""
        x = jax.nn.relu6(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.head(jnp.mean(x, axis=(1, 2)))
