"""What an attacker computes from a model and a record with its label."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def class_scores(model: Any, X: NDArray[Any]) -> NDArray[np.float64]:
    """Return ``decision_function`` with one column for each of ``classes_``."""
    scores = np.array(model.decision_function(X), np.float64)
    return np.column_stack([-scores, scores]) / 2 if scores.ndim == 1 else scores


def columns_of(model: Any, y: NDArray[Any]) -> NDArray[np.intp]:
    """Return the column of each label.

    Raises
    ------
    TypeError
        If the model is no classifier.
    ValueError
        If there are several labels a record, or one that is no class of the model.
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
    the first steps from small parameters do; any score gives a valid bound.
    """
    rows, columns = np.arange(len(y)), columns_of(model, y)
    scores = class_scores(model, X) - class_scores(model, -X)
    return np.asarray(scores[rows, columns] - scores.mean(axis=1))


def margins(model: Any, X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the score of the label less the highest other score: a negative loss."""
    rows, columns = np.arange(len(y)), columns_of(model, y)
    scores = class_scores(model, X)
    own = scores[rows, columns]
    scores[rows, columns] = -np.inf
    return np.asarray(own - scores.max(axis=1))
