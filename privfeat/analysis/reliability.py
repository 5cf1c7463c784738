"""Diagrams of calibration: reliability, and histograms of probabilities."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from privfeat.analysis._axes import axes_or_new
from privfeat.analysis.metrics import (
    CalibrationReport,
    calibration_report,
    report_of,
)


class _ReportDisplay(ABC):
    """A picture of one `CalibrationReport`.

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

    def __init__(self, report: CalibrationReport, *, name: str | None = None) -> None:
        self.report = report
        self.name = name

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
        self._draw()
        return self

    @abstractmethod
    def _draw(self) -> None:
        """Draw the report on ``ax_``."""


class ReliabilityDisplay(_ReportDisplay):
    """Accuracy against the confidence in the top label: Figure 5 of Bu et al. 2023."""

    def _draw(self) -> None:
        report = self.report
        widths = np.diff(report.bin_edges)
        heights = np.nan_to_num(report.bin_accuracy)
        self.ax_.bar(
            report.bin_edges[:-1],
            heights,
            width=widths,
            align="edge",
            edgecolor="white",
            label=self.name,
        )
        self.ax_.plot([0, 1], [0, 1], "k:", label="perfectly calibrated")
        self.ax_.set_xlim(0, 1)
        self.ax_.set_ylim(0, 1)
        self.ax_.set_xlabel("confidence")
        self.ax_.set_ylabel("accuracy")
        self.ax_.set_title(f"ECE {report.ece:.3f}, MCE {report.mce:.3f}", loc="left")
        self.ax_.legend()


class ConfidenceHistogramDisplay(_ReportDisplay):
    """Histogram of the confidence: Figure 2 of Bu et al. 2023."""

    def _draw(self) -> None:
        report = self.report
        shares = np.full(len(report.confidence), 1.0 / len(report.confidence))
        self.ax_.hist(
            report.confidence, report.bin_edges, weights=shares, label=self.name
        )
        mean = float(report.confidence.mean())
        self.ax_.axvline(mean, color="0.3", linestyle="--", label="mean confidence")
        self.ax_.axvline(report.accuracy, color="k", label="accuracy")
        self.ax_.set_xlim(0, 1)
        self.ax_.set_xlabel("confidence")
        self.ax_.set_ylabel("part of the records")
        self.ax_.legend()


class TrueClassHistogramDisplay(_ReportDisplay):
    """Histogram of the true class's probability: Figure 11 of Bu et al. 2023."""

    def _draw(self) -> None:
        report = self.report
        shares = np.full(len(report.true_class), 1.0 / len(report.true_class))
        self.ax_.hist(
            report.true_class, report.bin_edges, weights=shares, label=self.name
        )
        self.ax_.set_xlim(0, 1)
        self.ax_.set_xlabel("probability of the true class")
        self.ax_.set_ylabel("part of the records")
        if self.name:
            self.ax_.legend()
