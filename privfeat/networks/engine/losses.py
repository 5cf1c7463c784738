"""Losses of one record each.

Scores of another shape are refused: of two vectors, one of scores and one column of
targets, NumPy's rules make a matrix, in which every record meets the targets of all.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def cross_entropy(
    scores: Float[Array, "n m"], labels: Int[Array, " n"]
) -> Float[Array, " n"]:
    """Return minus the logarithm of the softmax at each record's class."""
    _check_shape(scores, (len(labels), *scores.shape[1:2]))
    chosen = jnp.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
    return jax.nn.logsumexp(scores, axis=1) - chosen


def half_squared_error(
    scores: Float[Array, "n m"], targets: Float[Array, "n m"]
) -> Float[Array, " n"]:
    """Return half the squared distance to each record's target."""
    _check_shape(scores, targets.shape)
    return 0.5 * jnp.sum(jnp.square(scores - targets), axis=1)


def _check_shape(scores: Float[Array, "..."], shape: tuple[int, ...]) -> None:
    """Raise ValueError unless there is a row of scores for every record."""
    if scores.shape != shape or scores.ndim != 2:
        raise ValueError(
            "scores must be one row for each record, with one for each output, got "
            "another shape."
        )
