import math

import numpy as np
import pytest

from privfeat import DPAdamLinear, DPLeastSquares
from privfeat.analysis.ablation import METRICS, ClipNormDisplay, clip_norm_ablation
from privfeat.analysis.utility import PrivacyUtilityDisplay

NAMES = ("ant", "bee", "cat")


def test_utility_display_shows_mean_and_spread(blobs):
    X, y = blobs
    display = PrivacyUtilityDisplay.from_estimators(
        {"squares": DPLeastSquares(classes=NAMES)}, [0.1, 10], X, y, X, y, n_repeats=4
    )
    curve = display.curves["squares"]
    assert curve.accuracy.shape == curve.ece.shape == (2, 4)
    assert curve.accuracy[1].mean() > curve.accuracy[0].mean()
    line = display.axes_[0].get_lines()[0]
    assert np.array_equal(line.get_ydata(), curve.accuracy.mean(axis=1))
    assert display.axes_[1].get_ylabel() == "ECE"


def test_utility_needs_finite_epsilons(blobs):
    X, y = blobs
    with pytest.raises(ValueError, match="epsilons must be finite"):
        PrivacyUtilityDisplay.from_estimators({}, [1, math.inf], X, y, X, y)


def test_ablation_fits_every_cell(blobs):
    X, y = blobs
    grid = clip_norm_ablation(
        DPAdamLinear(classes=NAMES, epsilon=8, n_iter=10),
        [0.1, 1.0],
        [1e-6, 0.1, 1.0],
        X,
        y,
        X,
        y,
    )
    assert set(grid.values) == set(METRICS)
    assert all(values.shape == (2, 3) for values in grid.values.values())
    # without steps, nothing is learned, and nothing is believed
    assert grid.values["nll"][:, 0] == pytest.approx(math.log(3), abs=1e-3)
    assert grid.values["accuracy"][0, 1] > 0.7
    display = ClipNormDisplay(grid, metric="ece").plot()
    assert len(display.ax_.texts) == 6
    assert display.ax_.get_xlabel() == "learning rate"
