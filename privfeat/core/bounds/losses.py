"""Derivatives of the losses by the scores of a linear model.

For scores ``z`` (n_samples, n_outputs), label indicators ``y``, and ``s`` the logistic
function:

- ``"softmax"``: ``-log softmax(z)_c`` for the true class ``c``;
- ``"sigmoid"``: ``sum_j -y_j log s(z_j) - (1 - y_j) log(1 - s(z_j))``;
- ``"squared"``: ``sum_j (z_j - y_j)^2 / 2``.

The first derivative is ``p - y`` with ``p = softmax(z)``, ``s(z)`` or ``z``.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from privfeat._types import Loss


def residuals(
    loss: Loss, scores: Float[Array, "n m"], labels: Int[Array, "n k"]
) -> Float[Array, "n m"]:
    """Return ``p - y`` for records that carry up to ``k`` labels each."""
    indicators = label_indicators(labels, scores.shape[1])
    return _predictions(loss, scores) - indicators.astype(scores.dtype)


def label_indicators(
    labels: Int[Array, "n k"], n_outputs: int
) -> Bool[Array, "n {n_outputs}"]:
    """Return which labels a record carries: outside ``[0, n_outputs)`` is none.

    Each label counts once however often it is named, so no entry exceeds one.
    """
    return jnp.any(
        labels[:, :, None] == jnp.arange(n_outputs, dtype=labels.dtype)[None, None, :],
        axis=1,
    )


def curvatures(loss: Loss, scores: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Return ``p_j (1 - p_j)``, the diagonal of the Hessian by the scores."""
    probabilities = _predictions(loss, scores)
    return probabilities * (1.0 - probabilities)


def _predictions(loss: Loss, scores: Float[Array, "n m"]) -> Float[Array, "n m"]:
    if loss == "softmax":
        return jax.nn.softmax(scores, axis=1)
    return jax.nn.sigmoid(scores) if loss == "sigmoid" else scores
