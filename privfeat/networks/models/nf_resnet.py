"""Residual networks without normalization (Brock et al. 2021, arXiv:2101.08692)."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from privfeat.networks.layers import Dense, StandardizedConv
from privfeat.networks.models.resnet import ResidualNetwork, block_places, chain

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
        make: Any = partial(StandardizedConv, gamma=_RELU_GAMMA, rngs=rngs)
        width = n_outputs // 4
        self.beta = beta
        self.stride = stride
        self.convolutions = chain(make, (n_inputs, width, width, n_outputs), stride)
        self.convolutions[2].gain[...] *= 0.0
        changes = stride != 1 or n_inputs != n_outputs
        self.shortcut = make(n_inputs, n_outputs, 1) if changes else nnx.data(None)

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n i j o"]:
        """Return the weighted sum of both branches."""
        branch = active = jax.nn.relu(x) * self.beta
        if self.shortcut is not None:
            window = (self.stride, self.stride)
            # at odd ends, the mean over what there is of a window
            means = nnx.avg_pool(  # type: ignore[no-untyped-call]
                active, window, window, "SAME", count_include_pad=False
            )
            x = self.shortcut(means.astype(x.dtype))  # counts are of the default type
        for place, convolution in enumerate(self.convolutions):
            branch = convolution(jax.nn.relu(branch) if place else branch)
        return x + _ALPHA * branch


class NFResNet(ResidualNetwork):
    """NF-ResNet-50 by default, as ``nf_resnet50`` of timm: bottlenecks, no norm."""

    outside_of_pooling = -jnp.inf

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        n_outputs: int,
        *,
        depths: tuple[int, ...] = (3, 4, 6, 3),
        width: int = 64,
        rngs: nnx.Rngs,
    ) -> None:
        make = partial(StandardizedConv, gamma=_RELU_GAMMA, rngs=rngs)
        super().__init__(make, image_shape, depths, width)
        blocks, channels, variance = [], width, 1.0
        for stage, place, stride in block_places(depths):
            own, beta = 4 * width * 2**stage, variance**-0.5
            block = NormFreeBlock(channels, own, stride=stride, beta=beta, rngs=rngs)
            blocks.append(block)
            # a stage's first block has a convolution in its shortcut
            variance = _ALPHA**2 + (variance if place else 1.0)
            channels = own
        self.blocks = nnx.List(blocks)
        self.head = Dense(channels, n_outputs, rngs=rngs)
