import math

import pytest

from privfeat.report import AccuracyGrid, format_grid


@pytest.fixture
def grid():
    cells = {
        "DPFC": {8.0: [0.9, 0.8], 0.5: [0.5, 0.5], math.inf: [0.95]},
        "DPLeastSquares": {0.5: [0.25], 8.0: [1.0], math.inf: [1.0]},
    }
    return AccuracyGrid(cells, 0.97, "LogisticRegression", "digits")


def test_mean_averages_the_fits_of_a_cell(grid):
    assert grid.mean("DPFC", 8.0) == pytest.approx(0.85)


def test_spread_is_the_sample_standard_deviation(grid):
    assert grid.spread("DPFC", 8.0) == pytest.approx(0.1 / math.sqrt(2))
    assert grid.spread("DPFC", math.inf) == 0.0


def test_epsilons_are_sorted(grid):
    assert grid.epsilons == (0.5, 8.0, math.inf)


def test_format_grid_aligns_columns(grid):
    assert format_grid(grid).splitlines() == [
        "epsilon               0.5      8    inf",
        "DPFC                0.500  0.850  0.950",
        "DPLeastSquares      0.250  1.000  1.000",
        "LogisticRegression                0.970",
    ]


def test_format_grid_shows_the_baseline_without_infinite_fits():
    grid = AccuracyGrid({"DPFC": {1.0: [0.5]}}, 0.75, "Base", "digits")
    assert format_grid(grid).splitlines() == [
        "epsilon      1    inf",
        "DPFC     0.500",
        "Base            0.750",
    ]


@pytest.mark.parametrize(
    "cells",
    [
        {},
        {"DPFC": {}},
        {"DPFC": {1.0: []}},
        {"DPFC": {1.0: [0.5]}, "DPNewton": {2.0: [0.5]}},
    ],
)
def test_grid_refuses_holes(cells):
    with pytest.raises(ValueError, match="same epsilons"):
        AccuracyGrid(cells, 0.5, "Base", "digits")
