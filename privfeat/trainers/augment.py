"""Random views of images, drawn apart from the data of any other record."""

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

Augmentation = Literal["none", "crop_flip"]
AUGMENTATIONS: tuple[Augmentation, ...] = get_args(Augmentation)
View: TypeAlias = Callable[
    [Key[Array, ""], Float[Array, "h w c"]], Float[Array, "h w c"]
]


def augmented(
    images: Float[Array, "n h w c"],
    numbers: Int[Array, " n"],
    key: Key[Array, ""],
    *,
    augmentation: Augmentation,
    n_copies: int,
) -> Float[Array, "n k h w c"]:
    """Return ``n_copies`` views of every image, drawn from the key and its number.

    ``"none"`` repeats the image. ``"crop_flip"``: padded by an eighth of its side with
    its mirror image, cut at random, flipped with probability one half (De et al. 2022,
    Sander et al. 2023 appendix C, without colour jitter).
    """
    if augmentation == "none":
        return jnp.repeat(images[:, None], n_copies, axis=1)
    of_records = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, numbers)
    keys = jax.vmap(lambda own: jax.random.split(own, n_copies))(of_records)
    over_copies = jax.vmap(crop_flip, in_axes=(0, None))
    return jax.vmap(over_copies)(keys, images)


def crop_flip(
    key: Key[Array, ""], image: Float[Array, "h w c"]
) -> Float[Array, "h w c"]:
    """Return a random crop of the padded image, flipped or not."""
    pads = [max(side // 8, 1) for side in image.shape[:2]]
    of_row, of_column, of_flip = jax.random.split(key, 3)
    padding = [(pad, pad) for pad in pads] + [(0, 0)]
    wide = jnp.pad(image, padding, mode="reflect")
    row = jax.random.randint(of_row, (), 0, 2 * pads[0] + 1)
    column = jax.random.randint(of_column, (), 0, 2 * pads[1] + 1)
    zero = jnp.zeros((), row.dtype)
    cut = jax.lax.dynamic_slice(wide, (row, column, zero), image.shape)
    return jnp.where(jax.random.bernoulli(of_flip), cut[:, ::-1], cut)
