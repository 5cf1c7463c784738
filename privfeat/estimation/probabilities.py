"""Classes and probabilities from the scores of a linear model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, softmax

from privfeat._types import Loss, LossOption


def loss_of_scores(loss: LossOption, *, multilabel: bool) -> Loss:
    """Return what the parameter ``loss`` of a classifier stands for."""
    if loss == "auto":
        return "sigmoid" if multilabel else "softmax"
    return loss


def best_classes(scores: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[Any]:
    """Return the class with the highest score, of shape (n_samples,).

    Scores of one dimension, or of one column, are those of the second of two classes.
    """
    if scores.ndim > 1 and scores.shape[1] == 1:
        scores = scores[:, 0]
    best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    return np.asarray(classes[best])


def class_probabilities(loss: Loss, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities of shape (n_samples, n_classes).

    ``scores`` have this shape too, but (n_samples,) for two classes: the score of the
    second over the first.
    """
    if loss == "squared":
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores]) / 2.0
        return project_on_simplex(scores)
    if scores.ndim == 1:
        return np.column_stack([expit(-scores), expit(scores)])
    logits = scores if loss == "softmax" else log_expit(scores)
    return np.asarray(softmax(logits, axis=1))


def label_probabilities(
    loss: Loss, scores: NDArray[np.float64], negative_weight: float | None = None
) -> NDArray[np.float64]:
    """Return the probability of each label on its own, never quite 0 or 1.

    So that its logarithm is finite, as a log loss needs it. Where a label has
    probability ``p``, the score that minimizes ``p (s - 1)^2 + w s^2`` is ``s = p / (p
    + w)``: a ``negative_weight`` ``w`` of the squared loss is undone.
    """
    if negative_weight is not None:
        rest = np.maximum(1.0 - scores, np.finfo(float).tiny)
        scores = np.minimum(negative_weight * scores, rest) / rest
    margin = np.finfo(float).eps
    probabilities = expit(scores) if loss == "sigmoid" else scores
    return np.asarray(np.clip(probabilities, margin, 1.0 - margin))


def project_on_simplex(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the point of the probability simplex nearest to each row.

    The algorithm of Duchi et al. (2008, Figure 1). A constant added to a row does not
    change the result, and the order of entries is kept.

    >>> project_on_simplex(np.array([[0.6, 0.2, -3.0]]))
    array([[0.7, 0.3, 0. ]])
    """
    ordered = -np.sort(-scores, axis=1)
    excess = np.cumsum(ordered, axis=1) - 1.0
    counts = np.arange(1, scores.shape[1] + 1)
    support = np.sum(ordered - excess / counts > 0, axis=1)
    threshold = excess[np.arange(len(scores)), support - 1] / support
    return np.asarray(np.maximum(scores - threshold[:, None], 0.0))
