"""What a fitted linear model makes of rows, in NumPy alone: no JAX, no scikit-learn."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._types import Loss, RowScaling
from privfeat.data import LazyFeatures
from privfeat.estimation.probabilities import (
    best_classes,
    class_probabilities,
    label_probabilities,
)
from privfeat.estimation.shifting import scaled_rows

# Of targets, where a regressor is given none.
DEFAULT_BOUNDS = (-1.0, 1.0)
PREDICT_ROWS = 2**14


def read_in_parts(X: LazyFeatures) -> Iterator[NDArray[np.floating]]:
    """Yield the rows of a feature file, some of them at a time."""
    for start in range(0, len(X), PREDICT_ROWS):
        yield X.read(start, min(start + PREDICT_ROWS, len(X)))


def linear_scores(
    features: NDArray[np.floating],
    coef: NDArray[np.float64],
    intercept: Any,
    center: NDArray[np.float64],
    row_scaling: RowScaling,
) -> NDArray[np.float64]:
    """Return ``Z coef^T + intercept`` of the scaled and centred rows ``Z``."""
    rows = scaled_rows(features, center, row_scaling)
    return np.asarray(rows @ coef.T + intercept)


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
