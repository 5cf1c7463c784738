import math

import numpy as np
import pytest

from privfeat import DPLeastSquares
from privfeat.analysis.utility import PrivacyUtilityDisplay, UtilityCurve

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


def test_utility_display_shows_fits_without_privacy_and_a_baseline(blobs):
    cells = UtilityCurve(np.array([[0.5, 0.6], [0.9, 0.9]]), np.zeros((2, 2)))
    free = UtilityCurve(np.array([[0.95]]), np.zeros((1, 1)))
    display = PrivacyUtilityDisplay(
        [0.5, 8.0], {"a": cells}, without_privacy={"a": free}, baseline=("b", 0.97)
    ).plot()
    ax = display.axes_[0]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.5", "8", "∞"]
    drawn, dotted, dashed = (list(line.get_ydata()) for line in ax.get_lines())
    assert (drawn, dotted, dashed) == ([0.55, 0.9], [0.9, 0.95], [0.97, 0.97])


def test_utility_needs_finite_epsilons(blobs):
    X, y = blobs
    with pytest.raises(ValueError, match="epsilons must be finite"):
        PrivacyUtilityDisplay.from_estimators({}, [1, math.inf], X, y, X, y)
