"""Sums of numbers and squares: what one record adds, by brute force."""

import itertools
import math

import numpy as np
import pytest

from privfeat.core.bounds import replacement
from privfeat.core.sums.confidence import exact_column_moments

# ends, zeros, what rounds to them, NaN, and what lies outside
VALUES = [
    *np.linspace(-1.0, 1.0, 65),
    *(1e-7, -1e-7, 1.0 - 1e-7, 3.0, -np.inf, np.inf, np.nan, 2.0**-20, 1 / 3),
]
CASES = [
    ("add_remove", 0.5, 0.75),
    ("replace_one", 0.375, 0.6875),
    ("add_remove", 1.0, 1.0),
    ("replace_one", 0.25, 0.5),
    ("replace_one", 0.75, 0.0),
    ("replace_one", 1.0, 0.5),
]


def stacked(rows, share, shift, count_scale=0.5):
    """Return what one vector holds of the three sums, with their scales."""
    values = np.array(rows, float)
    found = exact_column_moments(values, np.ones(len(values), bool), shift)
    scales = count_scale, math.sqrt(share), 1.0
    parts = zip(found, scales, strict=True)
    return np.concatenate([np.atleast_1d(e.scaled(s).value) for e, s in parts])


@pytest.mark.parametrize(("adjacency", "share", "shift"), CASES)
def test_a_record_moves_moments_by_their_sensitivity(adjacency, share, shift):
    """Of one column; and of three, where every column has the worst values."""
    bound = replacement.column_moments(1, 0.5, math.sqrt(share), shift, adjacency)
    sums = [stacked([[value]], share, shift) for value in VALUES]
    others = sums if adjacency == "replace_one" else [np.zeros(3)]
    moved, pair = max(
        (float(np.linalg.norm(one - two)), (i, j))
        for i, one in enumerate(sums)
        for j, two in enumerate(others)
    )
    assert 0.999 * bound < moved <= bound
    wide = replacement.column_moments(3, 0.5, math.sqrt(share), shift, adjacency)
    one = stacked([[VALUES[pair[0]]] * 3], share, shift)
    two = stacked([[VALUES[pair[1]]] * 3], share, shift)
    if adjacency == "add_remove":
        two = np.zeros(7)
    assert 0.999 * wide < np.linalg.norm(one - two) <= wide


def test_replacing_costs_no_less_than_adding():
    for share, shift in itertools.product((0.01, 0.3, 0.5, 1.0), (0.0, 0.5, 1.0)):
        single, pair = (
            replacement.column_moments(2, 3.0, share, shift, adjacency)
            for adjacency in ("add_remove", "replace_one")
        )
        assert pair >= single


def test_stated_weights_are_the_best_of_a_grid():
    """Of the sum of variances of a mean and of a mean square, per column."""
    for adjacency, stated in (("add_remove", 0.5), ("replace_one", 0.375)):
        costs = {}
        for share in np.linspace(0.05, 1.0, 96).round(2):
            for shift in np.arange(0, 65) / 64:
                bound = replacement.column_moments(
                    1, 1e-6, math.sqrt(share), shift, adjacency
                )
                costs[share, shift] = bound**2 * (1.0 + 1.0 / share)
        bound = replacement.column_moments(
            1, 1e-6, math.sqrt(stated), (1.0 + stated) / 2.0, adjacency
        )
        found = bound**2 * (1.0 + 1.0 / stated)
        assert found <= 1.011 * min(costs.values())


def test_moments_are_those_of_the_records_that_count():
    values = np.random.default_rng(0).uniform(-1.2, 1.2, (40_000, 2))
    present = np.arange(len(values)) % 3 > 0
    count, first, second = exact_column_moments(values, present, 0.75)
    cut = values[present].clip(-1.0, 1.0)
    assert count.value == len(cut)
    assert first.value == pytest.approx(cut.sum(axis=0), abs=0.05)
    assert second.value == pytest.approx((cut**2 - 0.75).sum(axis=0), abs=0.05)


def test_a_number_that_is_none_is_zero():
    values = np.array([[math.nan, 0.5], [math.nan, -0.25]])
    _, first, second = exact_column_moments(values, np.ones(2, bool), 0.0)
    assert first.value.tolist() == [0.0, 0.25]
    assert second.value.tolist() == [0.0, 0.3125]


def test_sums_of_records_are_sums_of_each():
    """To the last bit, so that what holds for one record holds beside any others."""
    values = np.random.default_rng(1).uniform(-1, 1, (50, 3))
    whole = exact_column_moments(values, np.ones(50, bool), 0.6875)
    each = [exact_column_moments(row[None], np.ones(1, bool), 0.6875) for row in values]
    for at, exact in enumerate(whole):
        assert np.array_equal(exact.total, sum(one[at].total for one in each))


@pytest.mark.parametrize("shift", [-0.5, 1.5, 1 / 3, math.nan])
def test_a_shift_off_the_grid_is_refused(shift):
    with pytest.raises(ValueError, match="shift must be"):
        exact_column_moments(np.zeros((1, 1)), np.ones(1, bool), shift)


@pytest.mark.parametrize(
    "bad",
    [
        {"n_columns": 0},
        {"count_scale": 0.0},
        {"mean_scale": math.nan},
        {"mean_scale": 1.5},
        {"shift": -0.1},
        {"adjacency": "swap"},
    ],
)
def test_a_bound_refuses_numbers_out_of_range(bad):
    options = {"n_columns": 1, "count_scale": 1.0, "mean_scale": 0.5, "shift": 0.5}
    with pytest.raises(ValueError, match="must be"):
        replacement.column_moments(**{**options, "adjacency": "add_remove", **bad})
