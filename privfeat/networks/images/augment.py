"""Random views of images, drawn apart from the data of any other record.

Sander et al. 2023, appendix C, compares ``"resized_crop"`` ("RRC"), ``"crop_jitter"``
("ours") and ``"simclr"`` (Chen et al. 2020, appendix A, for small images: colours at
strength one half, no blur; ``"simclr_blur"`` is that for larger ones, with blur).
Colours are those of values in [-1, 1], as bytes have: images of other ranges keep
within about theirs, but -1 counts as black.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key
from numpy.typing import NDArray

from privfeat.core.noise.keys import key_of
from privfeat.networks.images.records import TO_UNIT_RANGE

Image: TypeAlias = Float[Array, "h w c"]
RandomKey: TypeAlias = Key[Array, ""]
Augmentation = Literal[
    "none", "crop_flip", "crop_jitter", "resized_crop", "simclr", "simclr_blur"
]
AUGMENTATIONS: tuple[Augmentation, ...] = get_args(Augmentation)
View: TypeAlias = Callable[[RandomKey, Image], Image]
# Brightness of red, green and blue, and the other two axes of the colour space YIQ.
_YIQ = ((0.299, 0.587, 0.114), (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))
_PAD = 20
_AREAS = (0.08, 1.0)
_ASPECTS = (3.0 / 4.0, 4.0 / 3.0)
_LEAST = 1e-30  # a probability, so that logarithms are finite
_BLURS = (0.1, 2.0)  # stddevs, in pixels


def to_inputs(
    records: NDArray[Any], scale: NDArray[np.float32] = TO_UNIT_RANGE
) -> NDArray[np.float32]:
    """Return records as the network takes them: bytes scaled, floats as they are."""
    if records.dtype != np.uint8:
        return records.astype(np.float32, copy=False)
    scaled: NDArray[np.float32] = (records.astype(np.float32) - scale[0]) / scale[1]
    return scaled


@dataclass(frozen=True)
class Views:
    """Makes inputs of the network, with their views, of stored records."""

    augmentation: Augmentation
    n_copies: int
    scale: Any = field(default_factory=lambda: TO_UNIT_RANGE)

    def __call__(
        self, records: Any, numbers: Int[Array, " n"], key: RandomKey
    ) -> Float[Array, "n k ..."]:
        """Return the views of these records, which have these numbers."""
        inputs, how = to_inputs(records, self.scale), (self.augmentation, self.n_copies)
        views: Float[Array, "n k ..."] = augmented(inputs, numbers, key, *how)
        return views


@partial(jax.jit, static_argnums=(3, 4))
def augmented(
    images: Float[Array, "n ..."],
    numbers: Int[Array, " n"],
    key: RandomKey,
    augmentation: Augmentation,
    n_copies: int,
) -> Float[Array, "n k ..."]:
    """Return ``n_copies`` views of every image, drawn from the key and its number.

    - ``"none"`` repeats the image.
    - ``"crop_flip"``: padded by an eighth of its side with its mirror image, cut at
      random, flipped with probability one half (De et al. 2022).
    - ``"crop_jitter"``: the same with 20 pixels, and brightness, contrast and
      saturation changed by up to a fifth.
    - ``"resized_crop"``: 8 to 100 % of the area, of aspect 3/4 to 4/3, stretched to the
      whole, and flipped or not.
    - ``"simclr"``: a resized crop whose colours change with probability 0.8, and are
      lost with probability 0.2.
    - ``"simclr_blur"``: the same, blurred with probability one half, over a tenth of
      its side, by a Gaussian of 0.1 to 2 pixels.
    """
    if augmentation == "none":
        return jnp.repeat(images[:, None], n_copies, axis=1)
    of_records = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, numbers)
    keys = jax.vmap(lambda own: jax.random.split(own, n_copies))(of_records)
    over_copies = jax.vmap(_VIEWS[augmentation], in_axes=(0, None))
    views = jax.vmap(over_copies)(keys, images)
    return views.astype(images.dtype)  # wider ones with jax_enable_x64


def voted(
    score: Callable[[Any], Float[Array, "m o"]],
    images: Float[Array, "n ..."],
    *,
    augmentation: Augmentation,
    n_votes: int,
    majority: bool = False,
) -> Float[Array, "n o"]:
    """Return the mean score of every image over ``n_votes`` of its views.

    The views are drawn alike for every image and every call, so that a prediction
    depends on the image alone. One vote is that of the image itself. With ``majority``
    each view votes for its class (Sander et al. 2023, Section 4.2): see `counted`.
    """
    if n_votes == 1:
        return score(images)
    numbers, key = jnp.zeros(len(images), jnp.int32), key_of(0)
    views = augmented(images, numbers, key, augmentation, n_votes)
    scores = score(views.reshape(-1, *images.shape[1:]))
    scores = scores.reshape(len(images), n_votes, -1)
    return counted(scores) if majority else jnp.mean(scores, axis=1)


def counted(scores: Float[Array, "n v o"]) -> Float[Array, "n o"]:
    """Return scores whose softmax is the share of views that vote for each class.

    Half a vote more is dealt out by the mean probabilities. It breaks ties, changes no
    majority, and keeps every score finite.
    """
    n_votes, n_classes = scores.shape[1:]
    votes = jax.nn.one_hot(jnp.argmax(scores, axis=2), n_classes).sum(axis=1)
    likely = jnp.mean(jax.nn.softmax(scores, axis=2), axis=1)
    likely = jnp.maximum(likely, _LEAST)
    return jnp.log((votes + 0.5 * likely) / (n_votes + 0.5))


def crop_flip(key: RandomKey, image: Image, pad: int | None = None) -> Image:
    """Return a random crop of the padded image, flipped or not."""
    height, width = image.shape[:2]
    pads = [min(pad or max(side // 8, 1), side - 1) for side in (height, width)]
    of_row, of_column, of_flip = jax.random.split(key, 3)
    padding = [(pads[0],) * 2, (pads[1],) * 2, (0, 0)]
    wide = jnp.pad(image, padding, mode="reflect")
    row = jax.random.randint(of_row, (), 0, 2 * pads[0] + 1)
    column = jax.random.randint(of_column, (), 0, 2 * pads[1] + 1)
    zero = jnp.zeros((), row.dtype)
    cut = jax.lax.dynamic_slice(wide, (row, column, zero), image.shape)
    return _flipped(of_flip, cut)


def crop_jitter(key: RandomKey, image: Image) -> Image:
    """Return a crop of the image padded by 20 pixels, with other colours."""
    of_crop, of_colours = jax.random.split(key)
    return jittered(of_colours, crop_flip(of_crop, image, _PAD), 0.2)


def resized_crop(key: RandomKey, image: Image) -> Image:
    """Return a random rectangle of the image, stretched to its size; or flipped."""
    of_area, of_aspect, of_place, of_flip = jax.random.split(key, 4)
    area = jax.random.uniform(of_area, (), minval=_AREAS[0], maxval=_AREAS[1])
    low, high = jnp.log(jnp.array(_ASPECTS))
    root = jnp.exp(jax.random.uniform(of_aspect, (), minval=low, maxval=high) / 2.0)
    sizes = jnp.minimum(jnp.sqrt(area) * jnp.stack([1.0 / root, root]), 1.0)
    starts = jax.random.uniform(of_place, (2,)) * (1.0 - sizes)
    sides = jnp.array(image.shape[:2], jnp.float32)
    cut = jax.image.scale_and_translate(
        image,
        image.shape,
        (0, 1),
        1.0 / sizes,
        -starts * sides / sizes,
        method="linear",
        antialias=False,
    )
    return _flipped(of_flip, cut)


def simclr(key: RandomKey, image: Image) -> Image:
    """Return a resized crop, often with other colours, sometimes without any."""
    of_crop, of_colours, of_choice, of_grey = jax.random.split(key, 4)
    image = resized_crop(of_crop, image)
    other = jittered(of_colours, image, 0.4, hue=0.1)
    image = jnp.where(jax.random.bernoulli(of_choice, 0.8), other, image)
    return jnp.where(jax.random.bernoulli(of_grey, 0.2), grey(image), image)


def simclr_blur(key: RandomKey, image: Image) -> Image:
    """Return what `simclr` does, in half of all cases blurred."""
    of_view, of_choice, of_width = jax.random.split(key, 3)
    view = simclr(of_view, image)
    width = jax.random.uniform(of_width, (), minval=_BLURS[0], maxval=_BLURS[1])
    return jnp.where(jax.random.bernoulli(of_choice), blurred(view, width), view)


def blurred(image: Image, width: Float[Array, ""]) -> Image:
    """Return the image under a Gaussian of stddev ``width``, a tenth of a side wide.

    At least three pixels are averaged; beyond the edge are those at the edge.
    """
    for axis in (0, 1):
        reach = max(image.shape[axis] // 20, 1)
        weights = jnp.exp(-0.5 * (jnp.arange(-reach, reach + 1) / width) ** 2)
        margin = [(reach, reach) if place == axis else (0, 0) for place in range(3)]
        wide, size = jnp.pad(image, margin, mode="edge"), image.shape[axis]
        shifted = [
            jax.lax.slice_in_dim(wide, start, start + size, axis=axis)
            for start in range(2 * reach + 1)
        ]
        image = jnp.tensordot(weights / jnp.sum(weights), jnp.stack(shifted), 1)
    return image


def jittered(key: RandomKey, image: Image, strength: float, hue: float = 0.0) -> Image:
    """Return the image with other brightness, contrast, saturation and hue.

    The first three are multiplied by numbers in ``1 -+ strength``; colours are turned
    by up to the part ``hue`` of a full turn, about the axis of greys. Saturation and
    hue exist for three channels only.
    """
    of_factors, of_hue = jax.random.split(key)
    factors = jax.random.uniform(
        of_factors, (3,), minval=1.0 - strength, maxval=1.0 + strength
    )
    image = (image + 1.0) * factors[0] - 1.0
    middle = jnp.mean(grey(image))
    image = middle + factors[1] * (image - middle)
    if image.shape[2] == 3:
        plain = grey(image)
        image = plain + factors[2] * (image - plain)
        turn = jax.random.uniform(of_hue, (), minval=-hue, maxval=hue)
        image = _turned(image, 2.0 * jnp.pi * turn)
    return jnp.clip(image, -1.0, 1.0)


def grey(image: Image) -> Image:
    """Return the image without colours; as it is unless it has three channels."""
    if image.shape[2] != 3:
        return image
    return jnp.broadcast_to((image @ jnp.array(_YIQ[0]))[..., None], image.shape)


def _turned(image: Image, angle: Float[Array, ""]) -> Image:
    """Return the image with its colours turned about the axis of greys."""
    to_yiq, cos, sin = jnp.array(_YIQ), jnp.cos(angle), jnp.sin(angle)
    turn = jnp.eye(3).at[1:, 1:].set(jnp.array([[cos, -sin], [sin, cos]]))
    turned: Image = image @ (jnp.linalg.inv(to_yiq) @ turn @ to_yiq).T
    return turned


def _flipped(key: RandomKey, image: Image) -> Image:
    return jnp.where(jax.random.bernoulli(key), image[:, ::-1], image)


_VIEWS: dict[Augmentation, View] = {
    "crop_flip": crop_flip,
    "crop_jitter": crop_jitter,
    "resized_crop": resized_crop,
    "simclr": simclr,
    "simclr_blur": simclr_blur,
}
