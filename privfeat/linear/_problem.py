"""What a fit makes of ``y``, as values."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._types import Loss


@dataclass(frozen=True)
class Shape:
    """The public sizes of a problem.

    Attributes
    ----------
    n_outputs : int
        Rows of the coefficient matrix: classes, or 1 for a binary sigmoid model.
    n_columns : int
        Columns of it: features, plus one with an intercept.
    constant : float
        Value of the constant coordinate in a bounded row; 0 without an intercept.
    loss : {"softmax", "sigmoid", "squared"}
    max_labels : int
        Most labels that one record carries.
    """

    n_outputs: int
    n_columns: int
    constant: float
    loss: Loss
    max_labels: int = 1


@dataclass(frozen=True)
class Problem:
    """What a fit makes of ``y``.

    Attributes
    ----------
    shape : Shape
    targets : int array of shape (n_samples, max_labels), or float of (n_samples,)
        Outputs that a record belongs to, filled up with -1; or what a regression
        predicts, in [-1, 1]. Sensitive.
    fitted : dict
        Public attributes that the fitted estimator gets.
    public : tuple of str
        What the guarantee assumes known about ``y``.
    classes_read : bool, default=False
        Whether the classes were read from ``y``.
    """

    shape: Shape
    targets: NDArray[np.integer] | NDArray[np.float64]
    fitted: dict[str, Any]
    public: tuple[str, ...]
    classes_read: bool = False
