"""Residual networks with group norm: ResNet v2 and Wide-ResNet."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, ClassVar, Literal

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


def chain(make: Callable[..., Conv], channels: tuple[int, ...], stride: int) -> Any:
    """Return the convolutions of a block: two of 3 x 3, or a bottleneck of three.

    A bottleneck is 1 x 1, 3 x 3, 1 x 1. The first of 3 x 3 has the stride.
    """
    sizes, strided = ((3, 3), 0) if len(channels) == 3 else ((1, 3, 1), 1)
    return nnx.List(
        make(
            channels[place],
            channels[place + 1],
            size,
            stride=stride if place == strided else 1,
            padding=same_padding(size),
        )
        for place, size in enumerate(sizes)
    )


class ResidualNetwork(nnx.Module):
    """A stem, residual blocks, and a head that reads means of the last features.

    Images below 64 pixels get a 3 x 3 stem without pooling, others one of 7 x 7 with
    stride 2 and max-pooling. A subclass sets ``blocks`` and ``head``.
    """

    outside_of_pooling: ClassVar[float]
    blocks: Any
    head: Dense

    def __init__(
        self,
        make: Callable[..., Conv],
        image_shape: tuple[int, int, int],
        depths: tuple[int, ...],
        width: int,
    ) -> None:
        self.small = min(image_shape[:2]) < 64
        size, stride = (3, 1) if self.small else (7, 2)
        padding = same_padding(size)
        self.stem = make(image_shape[2], width, size, stride=stride, padding=padding)
        self.group_sizes = tuple(depths)

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n m"]:
        """Return the scores."""
        x = self.stem(x)
        if not self.small:
            margin = [(0, 0), (1, 1), (1, 1), (0, 0)]
            wide = jnp.pad(x, margin, constant_values=self.outside_of_pooling)
            x = max_pool(wide, 3, stride=2)
        for block in self.blocks:
            x = block(x)
        return self.head(jnp.mean(jax.nn.relu(self.normalized(x)), axis=(1, 2)))

    def normalized(self, x: Float[Array, "n h w c"]) -> Float[Array, "n h w c"]:
        """Return the last features, normalized if the network has a norm."""
        return x


class PreActivationBlock(nnx.Module):
    """Norm, ReLU, convolution, two or three times, beside a shortcut (He et al. 2016).

    ``bottleneck`` makes three convolutions, the last four times as wide.
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
        make: Any = partial(Conv, use_bias=False, rngs=rngs)
        inner = (width, width, 4 * width) if bottleneck else (width, width)
        self.norms = nnx.List(group_norm(n) for n in (n_inputs, *inner[:-1]))
        self.convolutions = chain(make, (n_inputs, *inner), stride)
        changes = stride != 1 or n_inputs != inner[-1]
        shortcut = make(n_inputs, inner[-1], 1, stride=stride) if changes else None
        self.shortcut = shortcut or nnx.data(None)

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n i j o"]:
        """Return the sum of both branches."""
        shortcut = x
        for place, norm in enumerate(self.norms):
            x = jax.nn.relu(norm(x))
            if place == 0 and self.shortcut is not None:
                shortcut = self.shortcut(x)
            x = self.convolutions[place](x)
        return shortcut + x


class ResNet(ResidualNetwork):
    """ResNet v2 with group norm, padded as in timm's BiT."""

    outside_of_pooling = 0.0

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
        make = partial(Conv, use_bias=False, rngs=rngs)
        super().__init__(make, image_shape, depths, width)
        blocks, channels = [], width
        for stage, _, stride in block_places(depths):
            own = width * 2**stage
            block = PreActivationBlock(
                channels, own, stride=stride, bottleneck=bottleneck, rngs=rngs
            )
            blocks.append(block)
            channels = 4 * own if bottleneck else own
        self.blocks = nnx.List(blocks)
        self.norm = group_norm(channels)
        self.head = Dense(channels, n_outputs, rngs=rngs)

    def normalized(self, x: Float[Array, "n h w c"]) -> Float[Array, "n h w c"]:
        """Return the last features, normalized."""
        return self.norm(x)


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
        self.shortcut = nnx.data(None)
        if stride != 1 or n_inputs != n_outputs:
            self.shortcut = Conv(n_inputs, n_outputs, 1, stride=stride, rngs=rngs)

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
