"""From the scores of a linear model to class probabilities."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, softmax

from privfeat._types import Loss


def class_probabilities(loss: Loss, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities of shape (n_samples, n_classes).

    Parameters
    ----------
    loss : {"softmax", "sigmoid", "squared"}
    scores : array of shape (n_samples,) or (n_samples, n_classes)
        One dimension for two classes: the score of the second over the first.
    """
    if loss == "squared":
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores]) / 2.0
        return project_on_simplex(scores)
    if scores.ndim == 1:
        return np.column_stack([expit(-scores), expit(scores)])
    logits = scores if loss == "softmax" else log_expit(scores)
    return np.asarray(softmax(logits, axis=1))


def label_probabilities(loss: Loss, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability of each label on its own, never quite 0 or 1.

    So that its logarithm is finite, as a log loss needs it.
    """
    margin = np.finfo(float).eps
    probabilities = expit(scores) if loss == "sigmoid" else scores
    return np.asarray(np.clip(probabilities, margin, 1.0 - margin))


def project_on_simplex(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the point of the probability simplex nearest to each row.

    The algorithm of Duchi et al. (2008, Figure 1). A constant added to a row does not
    change the result, and the order of entries is kept.

    Examples
    --------
    >>> project_on_simplex(np.array([[0.6, 0.2, -3.0]]))
    array([[0.7, 0.3, 0. ]])
    """
    ordered = -np.sort(-scores, axis=1)
    excess = np.cumsum(ordered, axis=1) - 1.0
    counts = np.arange(1, scores.shape[1] + 1)
    support = np.sum(ordered - excess / counts > 0, axis=1)
    threshold = excess[np.arange(len(scores)), support - 1] / support
    return np.asarray(np.maximum(scores - threshold[:, None], 0.0))
