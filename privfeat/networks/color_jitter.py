"""Random changes of the colours of an image with values in [-1, 1], as bytes have.

Images of other ranges keep within about theirs, but -1 counts as black.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

# Brightness of red, green and blue, and the other two axes of the colour space YIQ.
_YIQ = ((0.299, 0.587, 0.114), (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))


def jittered(
    key: Key[Array, ""], image: Float[Array, "h w c"], strength: float, hue: float = 0.0
) -> Float[Array, "h w c"]:
    """Return the image with other brightness, contrast, saturation and hue.

    Parameters
    ----------
    key : key
    image : array of shape (height, width, n_channels)
    strength : float
        The first three are multiplied by numbers in ``1 -+ strength``.
    hue : float
        Colours are turned by up to this part of a full turn, about the axis of greys.
        Saturation and hue exist for three channels only.
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


def grey(image: Float[Array, "h w c"]) -> Float[Array, "h w c"]:
    """Return the image without colours; as it is unless it has three channels."""
    if image.shape[2] != 3:
        return image
    weights = jnp.array(_YIQ[0])
    return jnp.broadcast_to((image @ weights)[..., None], image.shape)


def _turned(
    image: Float[Array, "h w 3"], angle: Float[Array, ""]
) -> Float[Array, "h w 3"]:
    """Return the image with its colours turned about the axis of greys."""
    to_yiq = jnp.array(_YIQ)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    one, zero = jnp.ones_like(cos), jnp.zeros_like(cos)
    turn = jnp.stack(
        [
            jnp.stack([one, zero, zero]),
            jnp.stack([zero, cos, -sin]),
            jnp.stack([zero, sin, cos]),
        ]
    )
    turned: Float[Array, "h w 3"] = image @ (jnp.linalg.inv(to_yiq) @ turn @ to_yiq).T
    return turned
