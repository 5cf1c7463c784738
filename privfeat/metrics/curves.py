"""ROC and reliability from noisy histograms of scores, with intervals."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from privfeat._checks import check_real
from privfeat.core.noise.release import Release
from privfeat.metrics.intervals import (
    Estimate,
    Floats,
    Width,
    around,
    number,
    proportion,
)
from privfeat.metrics.tables import UnitGrid
from privfeat.solvers.levels import agreed

_FOLDED = math.sqrt(2.0 / math.pi)  # mean of abs(x) for a standard normal x


@dataclass(frozen=True)
class RocCurve:
    """Rates of the records whose score is above each threshold.

    Attributes
    ----------
    thresholds : array of shape (n_points,)
        Public, from 1 down to 0.
    false_positive_rate, true_positive_rate : Estimate of arrays
        Their values do not fall. Each interval is of one point.
    """

    thresholds: Floats
    false_positive_rate: Estimate
    true_positive_rate: Estimate

    def threshold_of(self, recall: float) -> float:
        """Return the highest threshold that finds this part of the second class.

        By the values of the curve, whose noise is paid for: it costs no more. With few
        records of the class the threshold is as noisy as the curve.

        Parameters
        ----------
        recall : float in (0, 1]
            The true positive rate that is wanted.

        Raises
        ------
        ValueError
            If ``recall`` is not as said, or the curve knows no threshold that finds
            so many and is better than to call that part of all records positive.
        """
        check_real("recall", recall, low=0.0, high=1.0, include_low=False)
        # a value is NaN where the noise hides it, and then no threshold is found
        reached = np.flatnonzero(self.true_positive_rate.value >= recall)
        best = int(reached[0]) if len(reached) else len(self.thresholds) - 1
        if not self.false_positive_rate.value[best] < recall:
            raise ValueError(
                f"the curve must know a threshold that finds {recall!r} of the class "
                "better than chance does. Ask for less, or evaluate more records of "
                "it or with a larger epsilon (`planned_recall`): noise may hide one."
            )
        return float(self.thresholds[best])


@dataclass(frozen=True)
class ReliabilityCurve:
    """How often predictions are right, by how sure the model is of them.

    Attributes
    ----------
    bin_edges : array of shape (n_bins + 1,)
        Public, of the largest probability of a record.
    confidence : array of shape (n_bins,)
        Its mean in each bin, from the noisy counts.
    accuracy : Estimate of arrays
    """

    bin_edges: Floats
    confidence: Floats
    accuracy: Estimate


@dataclass(frozen=True)
class Histograms:
    """Two noisy histograms on a grid, made to agree over its levels."""

    grid: UnitGrid
    # of scores of either side, (2, n_cells); expectations of a negative number never
    # come true
    counts: Floats
    # of the noise of either, (n_cells, n_cells); the two are independent
    covariance: Floats

    @classmethod
    def of(cls, release: Release, grid: UnitGrid) -> "Histograms":
        """Return the histograms of a release of `tables.exact_scores`."""
        ends = np.cumsum([2 * size for size in grid.sizes])[:-1]
        levels = [part.reshape(2, -1) for part in np.split(release.value, ends)]
        alike = [1.0] * len(levels)
        sides = [agreed([level[side] for level in levels], alike) for side in (0, 1)]
        counts = np.stack([levels[-1] for levels, _ in sides])
        return cls(grid, counts, release.noise_stddev**2 * grid.noise_covariance())

    def folded(self) -> "Histograms":
        """Return what two classes make of wrong and right predictions.

        The counts are of negatives and positives, by the probability of the second
        class. The more probable one is predicted: so confidence is that of the upper
        half of the grid, which mirrors the lower one.
        """
        negative, positive = self.counts
        upper = self.grid.middles > 0.5
        wrong = np.where(upper, negative + positive[::-1], 0.0)
        right = np.where(upper, positive + negative[::-1], 0.0)
        return Histograms(self.grid, np.stack([wrong, right]), 2.0 * self.covariance)

    def known_totals(self, z: float) -> bool:
        """Return whether the noise of both totals is small beside them."""
        noise = math.sqrt(max(float(self.covariance.sum()), 0.0))
        return bool(np.all(self.counts.sum(axis=1) > z * noise))


def roc_curve(found: Histograms, width: Width) -> RocCurve:
    """Return the ROC of negatives and positives, at the edges of the grid.

    There the counts of the cells are those of the scores above each threshold: the grid
    adds no error to a point, but says nothing of thresholds between.
    """
    n_cells = found.counts.shape[1]
    above = np.tri(n_cells + 1, n_cells, -1)[:, ::-1]  # cells over each threshold
    below = 1.0 - above
    noise = tuple(
        np.sum((one @ found.covariance) * two, axis=1)
        for one, two in ((above, above), (below, below), (above, below))
    )
    rates = []
    for counts in found.counts:
        rate = proportion(above @ counts, below @ counts, noise, width)
        if not np.any(np.isnan(rate.value)):
            rising = isotonic_regression(rate.value).clip(rate.low, rate.high)
            rate = Estimate(np.asarray(rising, np.float64), rate.low, rate.high)
        rates.append(rate)
    return RocCurve(found.grid.edges[::-1].copy(), *rates)


def roc_auc(found: Histograms, width: Width) -> Estimate:
    """Return the area under the ROC: a positive has the higher score, ties count half.

    Sampling: Bamber, The Area above the Ordinal Dominance Graph and the Area below the
    Receiver Operating Characteristic Graph, 1975, by the scores of the cells. Noise: to
    first order in that of the counts, and the product of both.

    The grid: of a positive and a negative in different cells the counts say which is
    higher; of two in one cell they do not, and the value counts half. With parts ``p``
    and ``q`` of either side in the cells, the area ``A`` is ``sum of p_i q_j over i >
    j``, call it ``L``, and of each pair in one cell between none and all: ``L <= A <= L
    + sum p_i q_i``, with equality where all such pairs are lost, or won. So the
    interval goes from the lower end of one for ``L`` to the upper end of one for ``L +
    sum p_i q_i``. If either end fails with probability ``a / 2``, all of it holds with
    ``1 - a``.
    """
    if not found.known_totals(width.z):
        return number(math.nan, 0.0, 1.0)
    n_cells = found.counts.shape[1]
    higher, same = np.tri(n_cells, n_cells, -1), np.eye(n_cells)
    lost, half, won = (
        _area(found, higher + part * same, width.cluster) for part in (0.0, 0.5, 1.0)
    )
    low = around(*lost, width, 0.0, 1.0).low
    high = around(*won, width, 0.0, 1.0).high
    return number(np.clip(half[0], low, high), low, high)


def _area(found: Histograms, wins: Floats, cluster: int) -> tuple[float, float]:
    """Return the mean of ``wins[positive, negative]``, and the variance of the mean."""
    (negative, positive), covariance = found.counts, found.covariance
    n, p = negative.sum(), positive.sum()
    value = float(positive @ wins @ negative / (n * p))
    by_positive = wins @ negative / n - value
    by_negative = positive @ wins / p - value
    centred = wins - value
    both = np.sum((covariance @ centred @ covariance) * centred) / (n * p) ** 2
    noise = by_positive @ covariance @ by_positive / p**2
    noise += by_negative @ covariance @ by_negative / n**2 + both
    sampling = 0.0
    for counts, lead in ((positive, by_positive), (negative, by_negative)):
        part = np.maximum(counts, 0.0) / np.maximum(counts, 0.0).sum()
        sampling += float(part @ lead**2 - (part @ lead) ** 2) / counts.sum()
    return value, float(noise) + cluster * sampling


def reliability(
    found: Histograms, n_classes: int, width: Width
) -> tuple[ReliabilityCurve, Estimate]:
    """Return the reliability of wrong and right predictions, and their ECE.

    Bins are those of the second finest level in which a largest probability can be.

    The ECE is a sum of distances ``|d|``, of which noise and sampling have variance
    ``s^2``: the mean of what is found is at least ``|d|`` and at most ``|d| + s sqrt(2
    / pi)``, and its variance at most ``s^2``. The interval holds for all in between.
    The value is made of ``sqrt(max(d^2 - s^2, 0))``.

    The grid: bins are what the ECE is defined by, but within a bin the confidence of a
    record is taken to be the middle of its cell. It is off by at most half the width
    ``h`` of the cell, so the sum of distances by at most ``t``, the sum of ``h`` over
    the records, with equality where all are at the same end of their cells. ``t`` is
    estimated from the same counts: the interval goes down and up by it, and its
    standard deviation is added to that of the distances, as that of a sum is no more.
    """
    bins = UnitGrid(found.grid.sizes[:-1])
    first = int(np.searchsorted(bins.edges[1:], 1.0 / n_classes, side="right"))
    edges = bins.edges[first:]
    per_bin = found.grid.sizes[-1] // bins.sizes[-1]
    cell_bins = np.repeat(np.arange(bins.sizes[-1]), per_bin) - first
    inside = cell_bins == np.arange(len(edges) - 1)[:, None]
    middles, (wrong, right) = found.grid.middles, found.counts

    def variance(weights: Any) -> Floats:
        return np.asarray(np.sum((weights @ found.covariance) * weights, axis=1))

    n_wrong, n_right, noise = inside @ wrong, inside @ right, variance(inside * 1.0)
    accuracy = proportion(n_right, n_wrong, (noise, noise, 0.0), width)
    weights = np.maximum(wrong + right, 0.0) + 1e-9
    confidence = (inside @ (weights * middles)) / (inside @ weights)
    curve = ReliabilityCurve(edges, confidence, accuracy)

    total = float(np.sum(n_wrong + n_right))
    noise_of_total = math.sqrt(2.0 * max(float(found.covariance.sum()), 0.0))
    if not total > width.z * noise_of_total:
        return curve, number(math.nan, 0.0, 1.0)
    gaps = n_right - inside @ (middles * (wrong + right))
    n_bins = np.maximum(n_wrong + n_right, 0.0)
    by_rate = n_bins * (accuracy.value * (1.0 - accuracy.value))
    sampling = width.cluster * np.nan_to_num(by_rate, nan=0.0)
    s2 = variance(inside * (1.0 - middles)) + variance(inside * middles) + sampling
    found_gap = float(np.abs(gaps).sum())
    off, off_variance = _off_middles(found, width.cluster)
    half = width.z * (math.sqrt(float(s2.sum())) + math.sqrt(off_variance)) + off
    low = found_gap - _FOLDED * float(np.sqrt(s2).sum()) - half
    value = float(np.sqrt(np.maximum(gaps**2 - s2, 0.0)).sum())
    ends = np.array([low, found_gap + half]) / total
    value = float(np.clip(value / total, *ends))
    return curve, number(*np.array([value, *ends]).clip(0.0, 1.0))


def _off_middles(found: Histograms, cluster: int) -> tuple[float, float]:
    """Return how far scores may be from the middles of their cells in all.

    The sum of half the widths over the records, and the variance of that estimate.
    """
    halves, counts = 0.5 * np.diff(found.grid.edges), found.counts.sum(axis=0)
    noise = 2.0 * float(halves @ found.covariance @ halves)
    sampling = cluster * float(halves**2 @ np.maximum(counts, 0.0))
    return max(float(halves @ counts), 0.0), max(noise, 0.0) + sampling
