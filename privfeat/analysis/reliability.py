"""Reliability diagrams: how often a classifier is right when it is sure."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from privfeat._checks import require
from privfeat.analysis.calibration import (
    CalibrationReport,
    calibration_report,
    report_of,
)


@dataclass(eq=False, repr=False)
class ReliabilityDisplay:
    """Accuracy against the confidence in the top label: Figure 5 of Bu et al. 2023.

    Parameters
    ----------
    report : CalibrationReport
    name : str, optional
        For the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib artists
        After `plot`.
    """

    report: CalibrationReport
    _: KW_ONLY
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        n_bins: int = 15,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Predict, compute and draw."""
        name = type(estimator).__name__ if name is None else name
        return cls(report_of(estimator, X, y, n_bins=n_bins), name=name).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        probabilities: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        n_bins: int = 15,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Compute and draw; see `calibration_report`."""
        report = calibration_report(
            y_true, probabilities, classes=classes, n_bins=n_bins
        )
        return cls(report, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on new axes."""
        self.ax_, self.figure_ = axes_or_new(ax)
        report, edges = self.report, self.report.bin_edges
        self.ax_.bar(
            edges[:-1],
            np.nan_to_num(report.bin_accuracy),
            width=np.diff(edges),
            align="edge",
            edgecolor="white",
            label=self.name,
        )
        self.ax_.plot([0, 1], [0, 1], "k:", label="perfectly calibrated")
        self.ax_.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="accuracy")
        self.ax_.set_title(f"ECE {report.ece:.3f}, MCE {report.mce:.3f}", loc="left")
        self.ax_.legend()
        return self


def axes_or_new(given: Any = None, n_columns: int = 1, **size: Any) -> tuple[Any, Any]:
    """Return the axes that were given and their figure, or new ones without a screen.

    ImportError if matplotlib is missing.
    """
    if given is None:
        require("a figure", "matplotlib", extra="plot")
        from matplotlib import pyplot

        _, given = pyplot.subplots(1, n_columns, layout="constrained", **size)
    return given, (given if n_columns == 1 else given[0]).figure
