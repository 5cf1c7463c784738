import numpy as np
import pytest

from privfeat.analysis.reliability import (
    ConfidenceHistogramDisplay,
    ReliabilityDisplay,
    TrueClassHistogramDisplay,
)


def test_reliability_bars_are_accuracies(fitted, blobs):
    display = ReliabilityDisplay.from_estimator(fitted, *blobs, n_bins=5)
    heights = [bar.get_height() for bar in display.ax_.patches]
    assert np.array_equal(heights, np.nan_to_num(display.report.bin_accuracy))
    assert display.name == "DPLeastSquares"
    assert "ECE" in display.ax_.get_title(loc="left")


@pytest.mark.parametrize("cls", [ConfidenceHistogramDisplay, TrueClassHistogramDisplay])
def test_histogram_bars_sum_to_one(cls):
    p = [[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]]
    display = cls.from_predictions([0, 1, 0], p, n_bins=10, name="mine")
    heights = [bar.get_height() for bar in display.ax_.patches]
    assert sum(heights) == pytest.approx(1)
    counted = np.array(heights) * 3
    probabilities = (
        display.report.confidence
        if cls is ConfidenceHistogramDisplay
        else display.report.true_class
    )
    assert counted == pytest.approx(np.histogram(probabilities, 10, (0, 1))[0])
