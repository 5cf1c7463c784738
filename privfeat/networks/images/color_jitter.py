"""Random changes of the colours of an image with values in [-1, 1], as bytes have.

Images of other ranges keep within about theirs, but -1 counts as black.
"""

from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

Image: TypeAlias = Float[Array, "h w c"]
RandomKey: TypeAlias = Key[Array, ""]
# Brightness of red, green and blue, and the other two axes of the colour space YIQ.
_YIQ = ((0.299, 0.587, 0.114), (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))


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
