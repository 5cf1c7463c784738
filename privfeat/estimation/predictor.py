"""What a fitted linear model makes of rows, in NumPy alone: no JAX, no scikit-learn."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.special import expit, log_expit, softmax

from privfeat._process import times_matrix
from privfeat._rewording import SPARSE
from privfeat._types import Loss, RowScaling
from privfeat.data import LazyFeatures

# Of targets, where a regressor is given none.
DEFAULT_BOUNDS = (-1.0, 1.0)
PREDICT_ROWS = 2**14


def read_in_parts(X: LazyFeatures) -> Iterator[NDArray[np.floating]]:
    """Yield the rows of a feature file, some of them at a time."""
    for start in range(0, len(X), PREDICT_ROWS):
        yield X.read(start, min(start + PREDICT_ROWS, len(X)))


def scaled_rows(
    features: Any, center: NDArray[np.float64], row_scaling: RowScaling
) -> Any:
    """Return rows as a model sees them, for predictions: not clipped, no constant.

    Sparse rows stay sparse; TypeError if they would be centred.
    """
    if issparse(features):
        if np.any(center):
            raise TypeError(SPARSE)
        return features if row_scaling == "clip" else _sparse_unit_rows(features)
    rows = features.astype(np.float64, order="C")  # norms of rows are added up by it
    if row_scaling == "clip":
        return rows - center
    return unit_rows(unit_rows(rows) - center)


def unit_rows(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows divided by their norms; zero rows stay zero."""
    largest = np.max(np.abs(rows), axis=1, keepdims=True, initial=0.0)
    rows = rows / np.where(largest > 0.0, largest, 1.0)  # no overflow of squares
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0.0, norms, 1.0))


def _sparse_unit_rows(features: csr_array) -> csr_array:
    """Return rows of norm one, or zero, of the same sparsity."""
    rows, counts = features.copy(), np.diff(features.indptr)
    row_of = np.repeat(np.arange(len(counts)), counts)
    largest = np.zeros(len(counts))
    np.maximum.at(largest, row_of, np.abs(rows.data))
    rows.data /= np.where(largest > 0.0, largest, 1.0)[row_of]
    norms = np.sqrt(np.bincount(row_of, rows.data**2, len(counts)))
    rows.data /= np.where(norms > 0.0, norms, 1.0)[row_of]
    return rows


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


def linear_scores(
    features: NDArray[np.floating],
    coef: NDArray[np.float64],
    intercept: Any,
    center: NDArray[np.float64],
    row_scaling: RowScaling,
) -> NDArray[np.float64]:
    """Return ``Z coef^T + intercept`` of the scaled and centred rows ``Z``.

    What a row gets depends on that row alone, to the last bit (`times_matrix`).
    """
    rows = scaled_rows(features, center, row_scaling)
    if issparse(rows):  # each is multiplied by itself
        return np.asarray(rows @ coef.T + intercept)
    scores = times_matrix(rows, np.atleast_2d(coef).T)
    return np.asarray((scores if coef.ndim == 2 else scores[:, 0]) + intercept)


@dataclass(frozen=True, kw_only=True)
class LinearPredictor:
    """A fitted linear model as the numbers that predictions need."""

    name: str  # of the estimator, for messages
    # ``coef_``, ``intercept_`` and ``center_`` of the fit
    coef: NDArray[np.float64]
    intercept: Any
    center: NDArray[np.float64]
    row_scaling: RowScaling
    classes: NDArray[Any] | None = None  # (n_classes,); None for a regressor
    multilabel: bool = False  # whether a record may carry any number of labels
    loss: Loss = "squared"
    negative_weight: float | None = None  # as for `label_probabilities`
    bounds: tuple[float, float] = DEFAULT_BOUNDS  # a regressor cuts predictions to them

    def predict(self, X: LazyFeatures | NDArray[np.floating]) -> NDArray[Any]:
        """Return what ``predict`` of the estimator returns for these rows.

        ValueError if the rows have another number of features, or a value is not
        finite.
        """
        return np.concatenate([*map(self._predicted, self._scores(X))])

    def predict_proba(
        self, X: LazyFeatures | NDArray[np.floating]
    ) -> NDArray[np.float64]:
        """Return what ``predict_proba`` of a classifier returns for these rows.

        ValueError as for `predict`.
        """
        return np.concatenate([*map(self._probabilities, self._scores(X))])

    def _scores(
        self, X: LazyFeatures | NDArray[np.floating]
    ) -> Iterator[NDArray[np.float64]]:
        """Yield the scores of rows, some of them at a time."""
        width = len(self.center)
        if X.shape[1] != width:
            raise ValueError(
                f"X has {X.shape[1]} features, but {self.name} is expecting {width} "
                "features as input."
            )
        for rows in [X] if isinstance(X, np.ndarray) else read_in_parts(X):
            if not np.all(np.isfinite(rows)):
                raise ValueError("X must not contain NaN or infinity.")
            yield linear_scores(
                rows, self.coef, self.intercept, self.center, self.row_scaling
            )

    def _predicted(self, scores: NDArray[np.float64]) -> NDArray[Any]:
        if self.classes is None:
            return np.clip(scores, *self.bounds)
        if not self.multilabel:
            return best_classes(scores, self.classes)
        return (self._probabilities(scores) > 0.5).astype(np.int64)

    def _probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.multilabel:
            return label_probabilities(self.loss, scores, self.negative_weight)
        one = scores.shape[1] == 1
        return class_probabilities(self.loss, scores[:, 0] if one else scores)
