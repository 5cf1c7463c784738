"""Derivatives of the losses by the scores of a linear model.

For scores ``z`` (n_samples, n_outputs), label indicators ``y``, and ``s`` the logistic
function:

- ``"softmax"``: ``-log softmax(z)_c`` for the true class ``c``;
- ``"sigmoid"``: ``sum_j -y_j log s(z_j) - (1 - y_j) log(1 - s(z_j))``;
- ``"squared"``: ``sum_j (z_j - y_j)^2 / 2``.

The first derivative is ``p - y`` with ``p = softmax(z)``, ``s(z)`` or ``z``.

All functions take arrays of JAX or of NumPy, and return the same.
"""

from typing import Any

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from privfeat._types import Loss


def residuals(
    loss: Loss,
    scores: Float[Array | np.ndarray, "n m"],
    labels: Int[Array | np.ndarray, "n k"],
) -> Float[Any, "n m"]:
    """Return ``p - y`` for records that carry up to ``k`` labels each."""
    indicators = label_indicators(labels, scores.shape[1])
    return _predictions(loss, scores) - indicators.astype(scores.dtype)


def label_indicators(
    labels: Int[Array | np.ndarray, "n k"], n_outputs: int
) -> Bool[Any, "n {n_outputs}"]:
    """Return which labels a record carries: outside ``[0, n_outputs)`` is none.

    Each label counts once however often it is named, so no entry exceeds one.
    """
    if isinstance(labels, np.ndarray):  # as many labels as outputs fit into memory
        found = np.zeros((n_outputs, len(labels)), bool)
        records, places = np.nonzero((labels >= 0) & (labels < n_outputs))
        found[labels[records, places], records] = True
        return found.T
    xp = labels.__array_namespace__()
    outputs = xp.arange(n_outputs, dtype=labels.dtype)
    indicators: Bool[Any, "n {n_outputs}"]
    indicators = xp.any(labels.T[:, None, :] == outputs[None, :, None], axis=0).T
    return indicators


def curvatures(
    loss: Loss, scores: Float[Array | np.ndarray, "n m"]
) -> Float[Any, "n m"]:
    """Return ``p_j (1 - p_j)``, the diagonal of the Hessian by the scores."""
    probabilities = _predictions(loss, scores)
    return probabilities * (1.0 - probabilities)


def _predictions(
    loss: Loss, scores: Float[Array | np.ndarray, "n m"]
) -> Float[Any, "n m"]:
    xp = scores.__array_namespace__()
    if loss == "softmax":
        powers = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
        return powers / xp.sum(powers, axis=1, keepdims=True)
    return 1.0 / (1.0 + xp.exp(-scores)) if loss == "sigmoid" else scores
