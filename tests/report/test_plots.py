import io
import math

import numpy as np
import pytest
from matplotlib.image import imread

from privfeat.report import AccuracyGrid, plot_grid


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
