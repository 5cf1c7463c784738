"""Fine-tuning of the last groups of a pretrained network, the rest computed once.

What comes before the first trained block maps every image by itself and does not
change, so that its outputs are computed once, and are records of their own: of shape
(height, width, channels) or, before the head, rows of features. With no augmentation
this is the same training as with ``frozen=`` on the images.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from PIL import Image

from privfeat.networks import load_timm_weights
from privfeat.networks.images.augment import to_inputs
from privfeat.networks.models import MobileNetV2
from privfeat.networks.weights import build

NAMES = ("mobilenetv2_100", "mobilenetv2_100_same")
_RECORDS = 64


class Tail(nnx.Module):
    """The last ``n_groups`` groups of blocks, at least one, and the head."""

    def __init__(self, network: MobileNetV2, n_groups: int) -> None:
        self.blocks = nnx.List(list(network.blocks)[n_frozen(network, n_groups) :])
        self.head = network.head

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the scores."""
        for block in self.blocks:
            x = block(x)
        return self.head(jnp.mean(x, axis=(1, 2)))


class FrozenPart:
    """Images on their way through the blocks that are not trained.

    Parameters
    ----------
    network : MobileNetV2
    splits : sequence of arrays of bytes
        Images, the training set and the test set.
    size : int
        Side to which they are enlarged.
    """

    def __init__(
        self, network: MobileNetV2, splits: tuple[np.ndarray, ...], size: int
    ) -> None:
        self.network = network
        self._splits = splits
        self._size = size
        self._done = -1

    def before(self, n_groups: int) -> tuple[np.ndarray, ...]:
        """Return what the last ``n_groups`` groups and the head take in, by split.

        Numbers of groups must not rise from call to call.
        """
        end = n_frozen(self.network, n_groups)
        if end < self._done:
            raise ValueError("groups must be asked for from many to few.")
        if end > self._done:
            forward = jax.jit(lambda x: self._forward(x, end, not n_groups))
            self._splits = tuple(
                in_parts(forward, images, self._prepared) for images in self._splits
            )
            self._done = end
        return self._splits

    def _prepared(self, images: np.ndarray) -> np.ndarray:
        return to_inputs(enlarged(images, self._size)) if self._done < 0 else images

    def _forward(self, x: jax.Array, end: int, pooled: bool) -> jax.Array:
        if self._done < 0:
            x = jax.nn.relu6(self.network.stem(x))
        for block in list(self.network.blocks)[max(self._done, 0) : end]:
            x = block(x)
        return jnp.mean(x, axis=(1, 2)) if pooled else x


def pretrained(name: str, weights: Path, size: int, n_outputs: int) -> MobileNetV2:
    """Return the network with public weights and a fresh head."""
    network = build(
        name, (size, size, 3), n_outputs, rngs=nnx.Rngs(params=jax.random.key(0))
    )
    return load_timm_weights(network, weights)


def trained_part(network: MobileNetV2, n_groups: int) -> nnx.Module:
    """Return the module to train on what `FrozenPart.before` returns."""
    return Tail(network, n_groups) if n_groups else network.head


def n_frozen(network: MobileNetV2, n_groups: int) -> int:
    """Return the number of blocks before the last ``n_groups`` groups."""
    return len(network.blocks) - sum(
        network.group_sizes[-n_groups:] if n_groups else ()
    )


def enlarged(images: np.ndarray, size: int) -> np.ndarray:
    """Return bytes of images resized to a square, bicubic."""
    resized = [
        Image.fromarray(image).resize((size, size), Image.Resampling.BICUBIC)
        for image in images
    ]
    return np.stack([np.asarray(image) for image in resized])


def in_parts(function, records: np.ndarray, prepare) -> np.ndarray:
    """Return ``function`` of all records, a part of one shape at a time."""
    found = []
    for start in range(0, len(records), _RECORDS):
        part = prepare(records[start : start + _RECORDS])
        rest = [(0, _RECORDS - len(part))] + [(0, 0)] * (part.ndim - 1)
        found.append(np.asarray(function(np.pad(part, rest)))[: len(part)])
    return np.concatenate(found)
