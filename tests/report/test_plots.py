import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread

from privfeat.report import AccuracyGrid, plot_grid
from privfeat.report.plots import spread_labels


def draw(cells):
    png = plot_grid(AccuracyGrid(cells, 0.97, "LogisticRegression", "digits"))
    return imread(io.BytesIO(png), format="png")


def count_pixels(image, colour):
    """Return how many pixels have a colour given as #RRGGBB."""
    target = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return int(np.all(np.abs(image[..., :3] - target) < 0.01, axis=-1).sum())


def test_plot_grid_draws_each_estimator_in_its_colour():
    row = {0.5: [0.5, 0.6], 8.0: [0.9, 0.9], math.inf: [0.95]}
    one, two = draw({"DPFC": row}), draw({"DPFC": row, "DPNewton": row})
    assert one.shape == (720, 1200, 4)
    assert count_pixels(one, "#0072B2") > 500
    assert count_pixels(one, "#D55E00") == 0
    assert count_pixels(two, "#D55E00") > 500


@pytest.mark.parametrize(
    "cells", [{1.0: [0.5]}, {math.inf: [0.9]}, {0.5: [0.0], 1.0: [1.0]}]
)
def test_plot_grid_draws_degenerate_grids(cells):
    assert count_pixels(draw({"DPFC": cells}), "#0072B2") > 100


def test_plot_grid_touches_no_global_state():
    import matplotlib.pyplot as plt

    draw({"DPFC": {1.0: [0.5]}})
    assert plt.get_fignums() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.01, 0.2))
def test_spread_labels_keeps_the_gap_the_order_and_the_mean(heights, gap):
    placed = spread_labels(heights, gap)
    order = np.argsort(heights, kind="stable")
    assert np.all(np.diff(np.asarray(placed)[order]) >= gap * (1 - 1e-9))
    assert np.mean(placed) == pytest.approx(np.mean(heights), abs=1e-9)


def test_spread_labels_moves_nothing_without_need():
    assert spread_labels([0.9, 0.1, 0.5], gap=0.1) == [0.9, 0.1, 0.5]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.01, 0.2))
def test_spread_labels_stays_below_the_top(heights, gap):
    placed = spread_labels(heights, gap, top=1.0)
    assert max(placed) <= 1.0 + 1e-9
    order = np.argsort(heights, kind="stable")
    assert np.all(np.diff(np.asarray(placed)[order]) >= gap * (1 - 1e-9))
