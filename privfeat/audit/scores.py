"""What an attacker computes from a model and a record with its label.

Tests that are made of classes take regressors as well: a class becomes a target, and a
prediction the class with the nearest target. It follows from what was fitted, as the
class of a classifier does: what a fit may reveal of a record bounds it alike.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from privfeat.estimation.predictor import DEFAULT_BOUNDS


def class_scores(model: Any, X: NDArray[Any]) -> NDArray[np.float64]:
    """Return ``decision_function`` with one column for each of ``classes_``."""
    scores = np.array(model.decision_function(X), np.float64)
    return np.column_stack([-scores, scores]) / 2 if scores.ndim == 1 else scores


def columns_of(model: Any, y: NDArray[Any]) -> NDArray[np.intp]:
    """Return the column of each label.

    TypeError if the model is no classifier; ValueError if there are several labels a
    record, or one that is no class of the model.
    """
    if not hasattr(model, "classes_"):
        raise TypeError(
            f"the model must be a classifier, got {type(model).__name__} without "
            "classes_. Use replay and check_noise, which need none."
        )
    classes = np.asarray(model.classes_)
    if y.ndim != 1 or not np.all(np.isin(y, classes)):
        raise ValueError("y must hold one of the model's classes for each row.")
    order = np.argsort(classes)
    return np.asarray(order[np.searchsorted(classes, y, sorter=order)])


def gradient_products(
    model: Any, X: NDArray[Any], y: NDArray[Any]
) -> NDArray[np.float64]:
    """Return how far a step on each record would agree with the model.

    The scores of a linear model without training move by ``(e_y - 1/k) x`` when it
    takes a step on a record, so this is the inner product of coefficients and step; the
    record's negative is subtracted, which removes intercepts. Of a network it is what
    the first steps from small parameters do; any score gives a valid bound. Of a
    regressor the step is ``t x``, of a target ``t`` about the middle of its range.
    """
    if predicts_numbers(model):
        moved = np.asarray(model.predict(X)) - np.asarray(model.predict(-X))
        return np.asarray((y - target_levels(model, 2).mean()) * moved, np.float64)
    rows, columns = np.arange(len(y)), columns_of(model, y)
    scores = class_scores(model, X) - class_scores(model, -X)
    return np.asarray(scores[rows, columns] - scores.mean(axis=1))


def margins(model: Any, X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the score of the label less the highest other score: a negative loss.

    Of a regressor, the negative absolute error.
    """
    if predicts_numbers(model):
        return np.asarray(-np.abs(np.asarray(model.predict(X), np.float64) - y))
    rows, columns = np.arange(len(y)), columns_of(model, y)
    scores = class_scores(model, X)
    own = scores[rows, columns]
    scores[rows, columns] = -np.inf
    return np.asarray(own - scores.max(axis=1))


def predicts_numbers(estimator: Any) -> bool:
    """Return whether it is a regressor, or a pipeline that ends in one."""
    return hasattr(estimator, "__sklearn_tags__") and bool(is_regressor(estimator))


def target_levels(estimator: Any, n_classes: int) -> NDArray[np.float64]:
    """Return a target for each class, evenly from the least to the largest.

    These are ``target_bounds`` of a regressor that has them, or -1 and 1.
    """
    last = getattr(estimator, "last_step", estimator)
    low, high = getattr(last, "target_bounds", None) or DEFAULT_BOUNDS
    return np.linspace(float(low), float(high), n_classes)


class NearestLevel:
    """A fitted regressor as a classifier of the levels of its target."""

    def __init__(self, model: Any, levels: NDArray[np.float64]) -> None:
        self.privacy_ = getattr(model, "privacy_", None)
        self._model, self._levels = model, levels

    def predict(self, X: NDArray[Any]) -> NDArray[np.intp]:
        """Return the place of the level that is nearest to each prediction."""
        found = np.asarray(self._model.predict(X), np.float64)
        return np.asarray(np.abs(found[:, None] - self._levels).argmin(axis=1))
