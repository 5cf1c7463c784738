"""Residual networks with group norm: ResNet v2 and Wide-ResNet."""

from collections.abc import Iterable, Iterator
from typing import Literal

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from privfeat.networks.layers import Conv, Dense, Norm, max_pool

Order = Literal["conv_norm_relu", "conv_relu_norm"]


def group_norm(n_channels: int) -> Norm:
    """Return a group norm of at most 32 groups."""
    groups = next(g for g in range(min(32, n_channels), 0, -1) if n_channels % g == 0)
    return Norm(n_channels, groups=groups)


def same_padding(size: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the padding of a kernel with an odd side: the same on all sides."""
    return ((size // 2, size // 2),) * 2


def block_places(depths: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    """Yield stage, place in it, and stride of every block.

    Every stage but the first halves the resolution.
    """
    for stage, depth in enumerate(depths):
        for place in range(depth):
            yield stage, place, 2 if stage and not place else 1


def is_small(image_shape: tuple[int, int, int]) -> bool:
    """Whether images are below 64 pixels: a 3 x 3 stem, of stride 1, and no pooling."""
    return min(image_shape[:2]) < 64


def pool_stem(x: Float[Array, "n h w c"], outside: float) -> Float[Array, "n i j c"]:
    """Return the largest of 3 x 3 values, with stride 2 and ``outside`` all around."""
    margin = [(0, 0), (1, 1), (1, 1), (0, 0)]
    return max_pool(jnp.pad(x, margin, constant_values=outside), 3, stride=2)


class PreActivationBlock(nnx.Module):
    """Norm, ReLU, convolution, two or three times, beside a shortcut (He et al. 2016).

    ``bottleneck`` makes three convolutions, 1 x 1, 3 x 3, 1 x 1, the last four times as
    wide.
    """

    def __init__(
        self,
        n_inputs: int,
        width: int,
        *,
        stride: int,
        bottleneck: bool,
        rngs: nnx.Rngs,
    ) -> None:
        n_outputs = 4 * width if bottleneck else width
        sizes = (1, 3, 1) if bottleneck else (3, 3)
        channels = (n_inputs, *(width,) * (len(sizes) - 1), n_outputs)
        strided = 1 if bottleneck else 0
        self.norms = nnx.List(group_norm(count) for count in channels[:-1])
        self.convolutions = nnx.List(
            Conv(
                channels[place],
                channels[place + 1],
                size,
                stride=stride if place == strided else 1,
                padding=same_padding(size),
                use_bias=False,
                rngs=rngs,
            )
            for place, size in enumerate(sizes)
        )
        changes = stride != 1 or n_inputs != n_outputs
        self.shortcut = (
            Conv(n_inputs, n_outputs, 1, stride=stride, use_bias=False, rngs=rngs)
            if changes
            else nnx.data(None)
        )

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n i j o"]:
        """Return the sum of both branches."""
        shortcut = x
        for place, (norm, convolution) in enumerate(
            zip(self.norms, self.convolutions, strict=True)
        ):
            x = jax.nn.relu(norm(x))
            if place == 0 and self.shortcut is not None:
                shortcut = self.shortcut(x)
            x = convolution(x)
        return shortcut + x


class ResNet(nnx.Module):
    """ResNet v2 with group norm, padded as in timm's BiT.

    Images below 64 pixels get a 3 x 3 stem without pooling, others one of 7 x 7 with
    stride 2 and max-pooling.
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        n_outputs: int,
        *,
        depths: tuple[int, ...] = (2, 2, 2, 2),
        width: int = 64,
        bottleneck: bool = False,
        rngs: nnx.Rngs,
    ) -> None:
        self.small = is_small(image_shape)
        self.stem = Conv(
            image_shape[2],
            width,
            3 if self.small else 7,
            stride=1 if self.small else 2,
            padding=same_padding(3 if self.small else 7),
            use_bias=False,
            rngs=rngs,
        )
        blocks, channels = [], width
        for stage, _, stride in block_places(depths):
            own = width * 2**stage
            block = PreActivationBlock(
                channels, own, stride=stride, bottleneck=bottleneck, rngs=rngs
            )
            blocks.append(block)
            channels = 4 * own if bottleneck else own
        self.blocks = nnx.List(blocks)
        self.group_sizes = tuple(depths)
        self.norm = group_norm(channels)
        self.head = Dense(channels, n_outputs, rngs=rngs)

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n m"]:
        """Return the scores."""
        x = self.stem(x)
        if not self.small:
            x = pool_stem(x, 0.0)
        for block in self.blocks:
            x = block(x)
        x = jax.nn.relu(self.norm(x))
        return self.head(jnp.mean(x, axis=(1, 2)))


class WideBlock(nnx.Module):
    """Two 3 x 3 convolutions, each with norm and ReLU in the given order.

    ``conv_norm_relu`` is CONV-GN-ReLU, ``conv_relu_norm`` is CONV-ReLU-GN, the order
    that Sander et al. 2023 (appendix C) prefer.
    """

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        *,
        stride: int,
        order: Order,
        rngs: nnx.Rngs,
    ) -> None:
        self.order = order
        self.conv1 = Conv(n_inputs, n_outputs, 3, stride=stride, rngs=rngs)
        self.norm1 = group_norm(n_outputs)
        self.conv2 = Conv(n_outputs, n_outputs, 3, rngs=rngs)
        self.norm2 = group_norm(n_outputs)
        changes = stride != 1 or n_inputs != n_outputs
        self.shortcut = (
            Conv(n_inputs, n_outputs, 1, stride=stride, rngs=rngs)
            if changes
            else nnx.data(None)
        )

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n i j o"]:
        """Return the sum of both branches."""
        branch = activate(self.norm1, self.conv1(x), self.order)
        branch = activate(self.norm2, self.conv2(branch), self.order)
        return branch + (x if self.shortcut is None else self.shortcut(x))


def activate(
    norm: Norm, x: Float[Array, "n h w c"], order: Order
) -> Float[Array, "n h w c"]:
    """Return ``x`` after norm and ReLU, in the given order."""
    if order == "conv_relu_norm":
        return norm(jax.nn.relu(x))
    return jax.nn.relu(norm(x))


class WideResNet(nnx.Module):
    """WRN-16-4 by default: three groups of two blocks, with 64, 128, 256 channels."""

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        n_outputs: int,
        *,
        depth: int = 16,
        widening: int = 4,
        order: Order = "conv_relu_norm",
        rngs: nnx.Rngs,
    ) -> None:
        if depth % 6 != 4:
            raise ValueError(f"depth must be 6 k + 4, got {depth!r}.")
        self.order = order
        self.stem = Conv(image_shape[2], 16, 3, rngs=rngs)
        self.stem_norm = group_norm(16)
        blocks, channels = [], 16
        self.group_sizes = ((depth - 4) // 6,) * 3
        for group, _, stride in block_places(self.group_sizes):
            own = 16 * widening * 2**group
            blocks.append(
                WideBlock(channels, own, stride=stride, order=order, rngs=rngs)
            )
            channels = own
        self.blocks = nnx.List(blocks)
        self.head = Dense(channels, n_outputs, rngs=rngs)

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n m"]:
        """Return the scores."""
        x = activate(self.stem_norm, self.stem(x), self.order)
        for block in self.blocks:
            x = block(x)
        return self.head(jnp.mean(x, axis=(1, 2)))
