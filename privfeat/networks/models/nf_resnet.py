"""Residual networks without normalization (Brock et al. 2021, arXiv:2101.08692)."""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from privfeat.networks.convolutions import StandardizedConv
from privfeat.networks.layers import Dense
from privfeat.networks.models.resnet import (
    block_places,
    is_small,
    pool_stem,
    same_padding,
)

# The reciprocal of the standard deviation of a rectified Gaussian.
_RELU_GAMMA = 1.7139588594436646
_ALPHA = 0.2


class NormFreeBlock(nnx.Module):
    """Bottleneck of three standardized convolutions beside a shortcut.

    ``x + alpha f(beta relu(x))``, where ``beta`` is 1 over the standard deviation that
    ``x`` has at initialization, and ``f`` keeps variances (section 3.2). The last gain
    starts at zero, so that a fresh block is its shortcut.
    """

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        *,
        stride: int,
        beta: float,
        rngs: nnx.Rngs,
    ) -> None:
        width = n_outputs // 4
        self.beta = beta
        self.stride = stride
        self.convolutions = nnx.List(
            StandardizedConv(
                n_from,
                n_to,
                size,
                stride=stride if size == 3 else 1,
                padding=same_padding(size),
                gamma=_RELU_GAMMA,
                initial_gain=gain,
                rngs=rngs,
            )
            for n_from, n_to, size, gain in (
                (n_inputs, width, 1, 1.0),
                (width, width, 3, 1.0),
                (width, n_outputs, 1, 0.0),
            )
        )
        changes = stride != 1 or n_inputs != n_outputs
        self.shortcut = (
            StandardizedConv(n_inputs, n_outputs, 1, gamma=_RELU_GAMMA, rngs=rngs)
            if changes
            else nnx.data(None)
        )

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n i j o"]:
        """Return the weighted sum of both branches."""
        first, *others = self.convolutions
        active = jax.nn.relu(x) * self.beta
        if self.shortcut is not None:
            x = self.shortcut(halved(active) if self.stride == 2 else active)
        branch = first(active)
        for convolution in others:
            branch = convolution(jax.nn.relu(branch))
        return x + _ALPHA * branch


class NFResNet(nnx.Module):
    """NF-ResNet-50 by default, as ``nf_resnet50`` of timm: bottlenecks, no norm at all.

    Images below 64 pixels get a 3 x 3 stem without pooling, others one of 7 x 7 with
    stride 2 and max-pooling.
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        n_outputs: int,
        *,
        depths: tuple[int, ...] = (3, 4, 6, 3),
        width: int = 64,
        rngs: nnx.Rngs,
    ) -> None:
        self.small = is_small(image_shape)
        size = 3 if self.small else 7
        self.stem = StandardizedConv(
            image_shape[2],
            width,
            size,
            stride=1 if self.small else 2,
            padding=same_padding(size),
            gamma=_RELU_GAMMA,
            rngs=rngs,
        )
        blocks, channels, variance = [], width, 1.0
        for stage, place, stride in block_places(depths):
            own, beta = 4 * width * 2**stage, variance**-0.5
            blocks.append(
                NormFreeBlock(channels, own, stride=stride, beta=beta, rngs=rngs)
            )
            # a stage's first block has a convolution in its shortcut
            variance = _ALPHA**2 + (variance if place else 1.0)
            channels = own
        self.blocks = nnx.List(blocks)
        self.group_sizes = tuple(depths)
        self.head = Dense(channels, n_outputs, rngs=rngs)

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n m"]:
        """Return the scores."""
        x = self.stem(x)
        if not self.small:
            x = pool_stem(x, -jnp.inf)
        for block in self.blocks:
            x = block(x)
        return self.head(jnp.mean(jax.nn.relu(x), axis=(1, 2)))


def halved(x: Float[Array, "n h w c"]) -> Float[Array, "n i j c"]:
    """Return means over windows of 2 x 2; at odd ends, over what there is of one."""
    ends = tuple((0, side % 2) for side in x.shape[1:3])

    def sums(values: Float[Array, "b h w d"]) -> Float[Array, "b i j d"]:
        padded = jnp.pad(values, ((0, 0), *ends, (0, 0)))
        n, height, width, channels = padded.shape
        blocks = padded.reshape(n, height // 2, 2, width // 2, 2, channels)
        return jnp.sum(jnp.sum(blocks, axis=4), axis=2)

    return sums(x) / sums(jnp.ones_like(x))
