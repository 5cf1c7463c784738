"""Losses of one record each."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def cross_entropy(
    scores: Float[Array, "n m"], labels: Int[Array, " n"]
) -> Float[Array, " n"]:
    """Return minus the logarithm of the softmax at each record's class."""
    chosen = jnp.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
    return jax.nn.logsumexp(scores, axis=1) - chosen


def half_squared_error(
    scores: Float[Array, "n m"], targets: Float[Array, "n m"]
) -> Float[Array, " n"]:
    """Return half the squared distance to each record's target."""
    return 0.5 * jnp.sum(jnp.square(scores - targets), axis=1)
