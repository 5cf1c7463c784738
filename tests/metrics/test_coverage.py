"""Intervals hold the figure of the population as often as they say, by simulation."""

import numpy as np
import pytest
from scipy.special import expit, ndtr
from scipy.stats import binom

from privfeat.metrics import evaluation_of_predictions
from privfeat.metrics.intervals import Width, proportion
from privfeat.metrics.regression import evaluation_of_sums
from privfeat.metrics.tables import ERROR_FACTORS

N_DRAWS = 100
# An interval that holds at 93 % or more has fewer hits with probability 1e-9.
LEAST = int(binom.ppf(1e-9, N_DRAWS, 0.93))


def drawn(rng, n):
    """Return normal classes two apart, and probabilities 1.3 times too sure."""
    y = (rng.random(n) < 0.5).astype(int)
    p = expit(2.6 * (rng.normal(size=n) + 2.0 * y - 1.0))
    return np.c_[1 - p, p], y


@pytest.mark.slow
@pytest.mark.statistical
def test_intervals_of_a_classifier_hold_the_population():
    """Fails by chance with probability 1e-9 for each figure."""
    rng = np.random.default_rng(0)
    truth = {
        "accuracy": ndtr(1.0),
        "balanced_accuracy": ndtr(1.0),
        "roc_auc": ndtr(np.sqrt(2.0)),
    }
    hits, without_noise = dict.fromkeys(truth, 0), 0
    for _ in range(N_DRAWS):
        found = evaluation_of_predictions(
            *drawn(rng, 1000), classes=[0, 1], epsilon=0.3
        )
        for name, value in truth.items():
            figure = found.figures[name]
            hits[name] += figure.low <= value <= figure.high
        table = found.confusion.value
        right, wrong = np.trace(table), table.sum() - np.trace(table)
        naive = proportion(right, wrong, (0.0, 0.0, 0.0), Width.of(0.95))
        without_noise += naive.low <= truth["accuracy"] <= naive.high
    assert min(hits.values()) >= LEAST, hits
    assert without_noise < LEAST  # who leaves out the noise is noticed


@pytest.mark.slow
@pytest.mark.statistical
def test_intervals_of_a_regressor_hold_the_population():
    """Fails by chance with probability 1e-9 for each figure."""
    rng = np.random.default_rng(0)
    truth = {
        "r2": 0.75,
        "mean_absolute_error": 0.1 * np.sqrt(2.0 / np.pi),
        "mean_squared_error": 0.01,
    }
    hits = dict.fromkeys(truth, 0)
    for _ in range(N_DRAWS):
        x = np.sqrt(0.03) * rng.normal(size=3000)
        y = x + 0.1 * rng.normal(size=3000)
        found = evaluation_of_predictions(x, y, target_bounds=(-1, 1), epsilon=1.0)
        for name, value in truth.items():
            figure = found.figures[name]
            hits[name] += figure.low <= value <= figure.high
    assert min(hits.values()) >= LEAST, hits


@pytest.mark.statistical
def test_noise_in_the_fourth_powers_hides_no_sampling():
    """Fails by chance with probability 1e-9; the interval held in 80 % of them."""
    rng, n, noise, n_draws = np.random.default_rng(0), 600, 0.03, 1000
    hits = 0
    for _ in range(n_draws):
        error = 0.1 * rng.normal(size=n)
        targets = np.zeros(n)
        powers = [np.ones(n), np.abs(error), error**2, error**4, *[targets] * 4]
        sums = np.sum(powers, axis=1) * ERROR_FACTORS + noise * rng.normal(size=8)
        found = evaluation_of_sums(sums, noise, (-0.5, 0.5), 0.95, 1, None)
        hits += found.mean_squared_error.low <= 0.01 <= found.mean_squared_error.high
    assert hits >= binom.ppf(1e-9, n_draws, 0.95)
