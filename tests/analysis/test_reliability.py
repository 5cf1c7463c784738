import numpy as np

from privfeat.analysis.reliability import ReliabilityDisplay


def test_reliability_bars_are_accuracies(fitted, blobs):
    display = ReliabilityDisplay.from_estimator(fitted, *blobs, n_bins=5)
    heights = [bar.get_height() for bar in display.ax_.patches]
    assert np.array_equal(heights, np.nan_to_num(display.report.bin_accuracy))
    assert display.name == "DPLeastSquares"
    assert "ECE" in display.ax_.get_title(loc="left")


def test_display_takes_predictions():
    p = [[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]]
    display = ReliabilityDisplay.from_predictions([0, 1, 0], p, n_bins=10, name="mine")
    assert display.report.accuracy == 2 / 3
    assert len(display.ax_.patches) == 10
