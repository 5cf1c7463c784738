import math

import numpy as np
import pytest

from privfeat.analysis.calibration import calibration_report, report_of


def slow_ece(y, p, n_bins):
    """Return ECE and MCE by a loop over bins, from the definition."""
    gaps, weights = [], []
    for b in range(n_bins):
        inside = [
            i for i in range(len(y)) if b / n_bins < max(p[i]) <= (b + 1) / n_bins
        ]
        if inside:
            right = sum(np.argmax(p[i]) == y[i] for i in inside) / len(inside)
            sure = sum(max(p[i]) for i in inside) / len(inside)
            gaps.append(abs(right - sure))
            weights.append(len(inside) / len(y))
    return sum(g * w for g, w in zip(gaps, weights, strict=True)), max(gaps)


@pytest.mark.parametrize("n_bins", [1, 7, 15])
def test_report_is_that_of_a_slow_loop(n_bins):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.6] * 4, size=300)
    y = rng.integers(0, 4, size=300)
    report = calibration_report(y, p, n_bins=n_bins)
    ece, mce = slow_ece(y, p, n_bins)
    assert report.ece == pytest.approx(ece)
    assert report.mce == pytest.approx(mce)
    assert report.nll == pytest.approx(-np.mean(np.log(p[np.arange(300), y])))
    indicator = np.eye(4)[y]
    assert report.brier == pytest.approx(np.mean(np.sum((p - indicator) ** 2, axis=1)))
    assert report.accuracy == np.mean(p.argmax(axis=1) == y)
    assert np.array_equal(report.true_class, p[np.arange(300), y])
    assert report.bin_counts.sum() == 300


def test_two_classes_count_the_top_label():
    report = calibration_report(
        ["a", "b"], [[0.9, 0.1], [0.8, 0.2]], classes=["a", "b"]
    )
    assert report.accuracy == 0.5
    assert report.brier == pytest.approx((2 * 0.1**2 + 2 * 0.8**2) / 2)
    assert report.nll == pytest.approx(-(math.log(0.9) + math.log(0.2)) / 2)


@pytest.mark.statistical
def test_calibrated_predictions_have_no_error():
    """Labels drawn from the probabilities: 0.01 is 5 stddev of a bin's gap."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1.0] * 3, size=60_000)
    y = (rng.uniform(size=(60_000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    assert calibration_report(y, p, n_bins=10).ece < 0.01


def test_empty_bins_are_nan_and_do_not_count():
    report = calibration_report([0, 0], [[1.0, 0.0], [1.0, 0.0]], n_bins=10)
    assert report.ece == report.mce == 0.0
    assert np.isnan(report.bin_accuracy[:9]).all()
    assert report.bin_accuracy[9] == 1.0


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([0], [[0.5, 0.6]], "sum to 1"),
        ([0], [[np.nan, 1.0]], "sum to 1"),
        ([0], [[1.5, -0.5]], ">= 0"),
        ([0, 1], [[0.5, 0.5]], "one entry for each row"),
        ([7], [[0.5, 0.5]], "among classes"),
        ([0.5], [[0.5, 0.5]], "among classes"),
        ([0], [0.5], "shape"),
        ([], np.empty((0, 2)), "shape"),
    ],
)
def test_report_refuses_what_is_no_distribution(y, p, message):
    with pytest.raises(ValueError, match=message):
        calibration_report(y, p)


def test_report_of_an_estimator_uses_its_classes(fitted, blobs):
    X, y = blobs
    report = report_of(fitted, X, y)
    assert report.accuracy == fitted.score(X, y)
    assert str(report).startswith("accuracy ")
