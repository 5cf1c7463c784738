"""What predictions are worth, and probabilities from the scores of a linear model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score

from privfeat._messages import without_data
from privfeat._types import Loss


class ScoredClassifier(ClassifierMixin):
    """Has the accuracy as its score, and shows no data if that fails."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on ``(X, y)``; no statement covers it."""
        predicted = self.predict(X)
        return float(
            without_data(accuracy_score, y, predicted, sample_weight=sample_weight)
        )


class ScoredRegressor(RegressorMixin):
    """Has R squared as its score, and shows no data if that fails."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R squared on ``(X, y)``; no statement covers it."""
        predicted = self.predict(X)
        return float(without_data(r2_score, y, predicted, sample_weight=sample_weight))


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
