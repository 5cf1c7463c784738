"""What the cells of the grid leave open is inside the intervals."""

import numpy as np
import pytest
from scipy.stats import binom

from privfeat.metrics import evaluation_of_predictions
from privfeat.metrics.curves import Histograms, RocCurve, reliability, roc_auc
from privfeat.metrics.intervals import Estimate, Width
from privfeat.metrics.tables import UnitGrid

GRID, WIDTH = UnitGrid(), Width.of(0.95)
N_CELLS, MANY = GRID.sizes[-1], 1e14
N_DRAWS = 100
# An interval that holds at 93 % or more has fewer hits with probability 1e-9.
LEAST = int(binom.ppf(1e-9, N_DRAWS, 0.93))


def without_noise(counts):
    """Return very many records without noise: what is left is the error of the grid."""
    return Histograms(GRID, MANY * np.asarray(counts), np.zeros((N_CELLS, N_CELLS)))


@pytest.mark.parametrize("seed", range(3))
def test_roc_area_is_open_by_the_pairs_of_one_cell(seed):
    """Scores of a cell may all be lost or all be won: both areas are the ends."""
    p, q = np.random.default_rng(seed).dirichlet(np.ones(N_CELLS), size=2)
    found = roc_auc(without_noise([q, p]), WIDTH)
    lost = sum(p[i] * q[:i].sum() for i in range(N_CELLS))
    assert found.low == pytest.approx(lost, abs=1e-6)
    assert found.high == pytest.approx(lost + p @ q, abs=1e-6)
    assert found.value == pytest.approx(lost + 0.5 * p @ q, abs=1e-6)


def test_roc_area_of_scores_in_one_cell_is_unknown():
    counts = np.zeros((2, N_CELLS))
    counts[:, 40] = 1.0
    found = roc_auc(without_noise(counts), WIDTH)
    assert (found.low, found.value, found.high) == (0.0, 0.5, 1.0)


def curve_of(false, true):
    """Return a curve of five thresholds, whose intervals nobody asks."""
    rates = [Estimate(np.array(rate), None, None) for rate in (false, true)]
    return RocCurve(np.array([1.0, 0.7, 0.4, 0.1, 0.0]), *rates)


def test_threshold_is_the_highest_that_finds_so_many():
    curve = curve_of([0.0, 0.1, 0.3, 0.8, 1.0], [0.0, 0.6, 0.9, 0.95, 1.0])
    assert [curve.threshold_of(r) for r in (0.5, 0.6, 0.7, 0.9)] == [0.7, 0.7, 0.4, 0.4]


@pytest.mark.parametrize(
    ("false", "true"),
    [
        ([0.0, 0.4, 0.7, 1.0, 1.0], [0.0, 0.3, 0.5, 0.7, 1.0]),  # at threshold 0
        ([0.0, 0.4, 0.85, 1.0, 1.0], [0.0, 0.3, 0.8, 0.8, 0.8]),  # never, by the noise
        ([0.0, 0.4, 0.85, 0.9, 1.0], [0.0, 0.3, 0.8, 0.9, 1.0]),  # as often in others
        ([np.nan] * 5, [np.nan] * 5),
    ],
)
def test_threshold_that_chance_would_find_is_refused(false, true):
    """The guide's recipe called everybody ill where the noise hid a threshold."""
    with pytest.raises(ValueError, match=r"must know a threshold that finds 0\.9"):
        curve_of(false, true).threshold_of(0.9)


@pytest.mark.parametrize("recall", [0.0, 1.1, np.nan, True, "0.9"])
def test_threshold_refuses_what_is_no_rate(recall):
    with pytest.raises((TypeError, ValueError), match="recall must be"):
        curve_of([0, 0, 0, 0, 1], [0, 1, 1, 1, 1]).threshold_of(recall)


@pytest.mark.parametrize("end", [0, 1])
def test_ece_is_open_by_half_the_width_of_the_cells(end):
    """Confidence at one end of every cell, and right as often as it says: ECE 0."""
    upper = np.arange(N_CELLS) >= N_CELLS // 2
    sure = GRID.edges[end : end + N_CELLS]
    part = upper / upper.sum()
    counts = without_noise([part * (1.0 - sure), part * sure])
    _, found = reliability(counts, 2, WIDTH)
    off = 0.5 * np.mean(np.diff(GRID.edges)[upper])
    assert found.low == 0.0
    assert found.high == pytest.approx(2.0 * off, rel=1e-4)


@pytest.mark.slow
@pytest.mark.statistical
def test_intervals_hold_what_the_cells_hide():
    """Half of the scores are in one cell, where the grid does not tell them apart.

    There positives have the higher scores. All confidences are at the upper ends of
    their cells, and right as often as they say. Fails by chance with probability 1e-9
    for each figure.
    """
    rng, n = np.random.default_rng(0), 40_000
    above = GRID.edges[np.arange(34, 60, 4)]  # upper ends
    cell = np.array([GRID.edges[40] - 0.004, GRID.edges[40]])
    hits, truth = {"roc_auc": 0, "ece": 0}, area(above, cell)
    for _ in range(N_DRAWS):
        found = measured(*drawn(rng, n, above, cell)).roc_auc
        hits["roc_auc"] += found.low <= truth <= found.high
        hits["ece"] += measured(*drawn_sure(rng, n, above)).ece.low <= 0.0
    assert min(hits.values()) >= LEAST, hits


def measured(y, p):
    """Return the private evaluation of classes and scores."""
    return evaluation_of_predictions(np.c_[1.0 - p, p], y, classes=[0, 1], epsilon=2.0)


def drawn(rng, n, above, cell):
    """Return classes and scores: half of them anywhere, half in one cell."""
    y = (rng.random(n) < 0.5).astype(int)
    return y, np.where(rng.random(n) < 0.5, cell[y], rng.choice(above, n))


def drawn_sure(rng, n, above):
    """Return classes and scores that are as often right as they say."""
    p = rng.choice(above, n)
    return (rng.random(n) < p).astype(int), p


def area(above, cell):
    """Return the area under the ROC of `drawn`: of all pairs of scores, by hand."""
    total = 0.0
    for positive, negative, part in (
        ([cell[1]], [cell[0]], 0.25),
        ([cell[1]], above, 0.25),
        (above, [cell[0]], 0.25),
        (above, above, 0.25),
    ):
        wins = np.subtract.outer(positive, negative)
        total += part * np.mean((wins > 0) + 0.5 * (wins == 0))
    return total
