"""Clip norm by learning rate: accuracy and calibration on a grid (Bu et al. 2023).

Every cell is a fit that spends its budget: for public data, or with every fit charged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from privfeat.analysis._axes import axes_or_new
from privfeat.analysis.metrics import report_of

METRICS = ("accuracy", "ece", "mce", "nll", "brier")


@dataclass(frozen=True)
class ClipNormGrid:
    """What `clip_norm_ablation` measured.

    Attributes
    ----------
    clip_norms, learning_rates : tuple of float
    values : dict of str to array of shape (n_clip_norms, n_learning_rates)
        Each of ``METRICS``.
    """

    clip_norms: tuple[float, ...]
    learning_rates: tuple[float, ...]
    values: dict[str, NDArray[np.float64]]


def clip_norm_ablation(
    estimator: Any,
    clip_norms: Sequence[float],
    learning_rates: Sequence[float],
    X: Any,
    y: ArrayLike,
    X_test: Any,
    y_test: ArrayLike,
    *,
    clip_parameter: str = "gradient_clip_norm",
    rate_parameter: str = "learning_rate",
) -> ClipNormGrid:
    """Fit a classifier at every clip norm and learning rate: Figure 3 of [1]_.

    Parameters
    ----------
    estimator : classifier
        Cloned. At a fixed budget all cells are equally private (Fact 5.1).
    clip_norms, learning_rates : sequence of float
    X, y : array-like
        Each fit spends its epsilon.
    X_test, y_test : array-like
        **Public**: the measures are exact.
    clip_parameter, rate_parameter : str
        Names of the estimator's parameters.

    References
    ----------
    .. [1] Bu, Wang & Long. On the Convergence and Calibration of Deep Learning with
       Differential Privacy. TMLR 2023.
    """
    values = {
        name: np.empty((len(clip_norms), len(learning_rates))) for name in METRICS
    }
    for i, clip_norm in enumerate(clip_norms):
        for j, rate in enumerate(learning_rates):
            settings = {clip_parameter: clip_norm, rate_parameter: rate}
            fitted = clone(estimator).set_params(**settings).fit(X, y)
            report = report_of(fitted, X_test, y_test)
            for name in METRICS:
                values[name][i, j] = getattr(report, name)
    return ClipNormGrid(tuple(clip_norms), tuple(learning_rates), values)


class ClipNormDisplay:
    """Heat map of one measure over clip norm and learning rate.

    Parameters
    ----------
    grid : ClipNormGrid
    metric : {"accuracy", "ece", "mce", "nll", "brier"}

    Attributes
    ----------
    ax_, figure_ : matplotlib artists
        After `plot`.
    """

    def __init__(self, grid: ClipNormGrid, *, metric: str = "accuracy") -> None:
        self.grid = grid
        self.metric = metric

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on new axes; every cell shows its value."""
        self.ax_, self.figure_ = axes_or_new(ax)
        values = self.grid.values[self.metric]
        self.ax_.imshow(values, cmap="viridis", origin="lower", aspect="auto")
        middle = 0.5 * (np.nanmin(values) + np.nanmax(values))
        for (i, j), value in np.ndenumerate(values):
            colour = "white" if value < middle else "black"
            self.ax_.text(j, i, f"{value:.3f}", ha="center", va="center", color=colour)
        self.ax_.set_xticks(
            range(values.shape[1]), [f"{rate:g}" for rate in self.grid.learning_rates]
        )
        self.ax_.set_yticks(
            range(values.shape[0]), [f"{norm:g}" for norm in self.grid.clip_norms]
        )
        self.ax_.set_xlabel("learning rate")
        self.ax_.set_ylabel("clip norm")
        self.ax_.set_title(self.metric, loc="left")
        return self
