"""Small networks: perceptron, SampleConvNet, small AlexNet, the simpleVGG family."""

import math
import re
from itertools import islice, pairwise
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from privfeat.networks.layers import Conv, Dense, max_pool

_MOST_LAYERS = 100
_SMALLEST_ALEXNET = 7
_SIMPLE_VGG = re.compile(r"simplevgg((?:-\d+\(\d+\))+)-(\d+)", re.IGNORECASE)


class MLP(nnx.Module):
    """Dense layers with ReLU between them, four by default, on flattened records."""

    def __init__(
        self,
        input_shape: tuple[int, ...],
        n_outputs: int,
        *,
        widths: tuple[int, ...] = (128, 128, 128),
        rngs: nnx.Rngs,
    ) -> None:
        sizes = (math.prod(input_shape), *widths, n_outputs)
        self.layers = nnx.List(
            Dense(before, after, rngs=rngs) for before, after in pairwise(sizes)
        )

    @property
    def head_name(self) -> str:
        """The name of the last layer, which the other networks call ``head``."""
        return f"layers/{len(self.layers) - 1}"

    def __call__(self, x: Float[Array, "n ..."]) -> Float[Array, "n m"]:
        """Return the scores."""
        x = x.reshape(x.shape[0], -1)
        *hidden, head = self.layers
        for layer in hidden:
            x = jax.nn.relu(layer(x))
        return head(x)


class SampleConvNet(nnx.Module):
    """Two convolutions and two dense layers for images of 28 x 28 (or about that).

    16 filters of size 8 with stride 2, max-pooling 2 with stride 1, 32 filters of size
    4 with stride 2, the same pooling, 32 hidden units: opacus' MNIST network. Bu et al.
    2023, appendix C.1.
    """

    def __init__(
        self, image_shape: tuple[int, int, int], n_outputs: int, *, rngs: nnx.Rngs
    ) -> None:
        height, width, channels = image_shape
        self.conv1 = Conv(
            channels, 16, 8, stride=2, padding=((3, 3), (3, 3)), rngs=rngs
        )
        self.conv2 = Conv(16, 32, 4, stride=2, padding="VALID", rngs=rngs)
        sides = [_conv_side(side) for side in (height, width)]
        self.hidden = Dense(32 * sides[0] * sides[1], 32, rngs=rngs)
        self.head = Dense(32, n_outputs, rngs=rngs)

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n m"]:
        """Return the scores."""
        x = max_pool(jax.nn.relu(self.conv1(x)), 2, stride=1)
        x = max_pool(jax.nn.relu(self.conv2(x)), 2, stride=1)
        x = jax.nn.relu(self.hidden(x.reshape(x.shape[0], -1)))
        return self.head(x)


class SmallAlexNet(nnx.Module):
    """Two convolutions of 64 filters of size 5, dense layers of 384 and 192, ReLU.

    After each convolution, max-pooling 3 with stride 2. The network of van der Veen et
    al. 2018, section 2.1, after Zhang et al. 2017, without their local response
    normalization; sides of images are at least 7.
    """

    def __init__(
        self, image_shape: tuple[int, int, int], n_outputs: int, *, rngs: nnx.Rngs
    ) -> None:
        height, width, channels = image_shape
        if min(height, width) < _SMALLEST_ALEXNET:
            raise ValueError(
                f"images must have sides of at least {_SMALLEST_ALEXNET} for "
                f"small_alexnet, got {image_shape[:2]}."
            )
        self.conv1 = Conv(channels, 64, 5, rngs=rngs)
        self.conv2 = Conv(64, 64, 5, rngs=rngs)
        sides = [((side - 1) // 2 - 1) // 2 for side in (height, width)]
        self.hidden1 = Dense(64 * sides[0] * sides[1], 384, rngs=rngs)
        self.hidden2 = Dense(384, 192, rngs=rngs)
        self.head = Dense(192, n_outputs, rngs=rngs)

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n m"]:
        """Return the scores."""
        for convolution in (self.conv1, self.conv2):
            x = max_pool(jax.nn.relu(convolution(x)), 3, stride=2)
        x = jax.nn.relu(self.hidden1(x.reshape(x.shape[0], -1)))
        return self.head(jax.nn.relu(self.hidden2(x)))


class SimpleVGG(nnx.Module):
    """Blocks of 3 x 3 convolutions with tanh, max-pooling after each, a hidden layer.

    ``simpleVGG-32(2)-64(2)-128(2)-128`` has blocks of 2 convolutions with 32, 64 and
    128 channels and 128 hidden units. Kurakin et al. 2022, appendix H.
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        n_outputs: int,
        *,
        blocks: tuple[tuple[int, int], ...],
        n_hidden: int,
        rngs: nnx.Rngs,
    ) -> None:
        height, width, channels = image_shape
        layers = []
        for n_channels, n_layers in blocks:
            for _ in range(n_layers):
                layers.append(Conv(channels, n_channels, 3, rngs=rngs))
                channels = n_channels
            height, width = height // 2, width // 2
        if not (height and width):
            raise ValueError(
                f"images must have sides of at least {2 ** len(blocks)} for "
                f"{len(blocks)} blocks, got {image_shape[:2]}."
            )
        self.convolutions = nnx.List(layers)
        self.sizes = tuple(n_layers for _, n_layers in blocks)
        self.hidden = Dense(height * width * channels, n_hidden, rngs=rngs)
        self.head = Dense(n_hidden, n_outputs, rngs=rngs)

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n m"]:
        """Return the scores."""
        layers = iter(self.convolutions)
        for n_layers in self.sizes:
            for layer in islice(layers, n_layers):
                x = jnp.tanh(layer(x))
            x = max_pool(x, 2)
        x = jnp.tanh(self.hidden(x.reshape(x.shape[0], -1)))
        return self.head(x)


def parse_simple_vgg(name: str) -> dict[str, Any]:
    """Return what a name such as ``simpleVGG-32(2)-128`` says of the network."""
    found = _SIMPLE_VGG.fullmatch(name)
    if found is None:
        raise ValueError(
            "a simpleVGG must be named as in 'simpleVGG-32(2)-64(2)-128(2)-128', "
            f"got {name!r}."
        )
    pairs = re.findall(r"(\d+)\((\d+)\)", found[1])
    blocks = tuple((int(channels), int(layers)) for channels, layers in pairs)
    # the name may be that of a model that a stranger planted
    if sum(layers for _, layers in blocks) > _MOST_LAYERS:
        raise ValueError(
            f"a simpleVGG must have at most {_MOST_LAYERS} convolutions, got more."
        )
    return {"blocks": blocks, "n_hidden": int(found[2])}


def _conv_side(side: int) -> int:
    """Return a side of the last feature map of `SampleConvNet`."""
    side = (side + 6 - 8) // 2 + 1 - 1
    side = (side - 4) // 2 + 1 - 1
    if side < 1:
        raise ValueError("images must have sides of at least 14 for sample_convnet.")
    return side
