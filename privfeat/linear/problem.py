"""What a linear model makes of ``y``: targets, and the sizes of its coefficients."""

from dataclasses import dataclass

from privfeat._types import Loss
from privfeat.estimation.problem import Problem


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


@dataclass(frozen=True, kw_only=True)
class LinearProblem(Problem):
    """A problem whose targets are those of a linear model of this ``shape``.

    ``targets`` is an int array of shape (n_samples, max_labels), the outputs that a
    record belongs to, filled up with -1; or a float array of shape (n_samples,), what a
    regression predicts, in [-1, 1].
    """

    shape: Shape
