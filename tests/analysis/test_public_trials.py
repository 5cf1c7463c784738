import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from privfeat import DPFC, DPLeastSquares
from privfeat.analysis.public_trials import run_trials


def draw(n_rows, seed):
    """Return rows of a Gaussian mixture with six classes."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(0).normal(size=(6, 20))
    y = np.arange(n_rows) % 6
    return 0.7 * centers[y] + rng.normal(size=(n_rows, 20)), y


@pytest.mark.slow
def test_trials_foretell_the_private_fit():
    """1,200 public records stand in for 4,000 private ones; within 6 points."""
    private, test = draw(4000, 1), draw(2000, 2)
    trials = run_trials(
        *draw(1600, 3),
        n_samples=4000,
        epsilon=0.1,
        n_repeats=3,
        estimators=["DPFC", "DPLeastSquares"],
    )
    free = LogisticRegression(C=10).fit(normalize(private[0]), private[1])
    best = free.score(normalize(test[0]), test[1])
    for trial, cls in zip(trials, (DPFC, DPLeastSquares), strict=True):
        scores = [
            cls(epsilon=0.1, classes=range(6)).fit(*private).score(*test)
            for _ in range(3)
        ]
        assert trial.loss > 0.02  # the budget is tight: noise is seen
        assert trial.loss == pytest.approx(best - np.mean(scores), abs=0.06)
        assert trial.non_private == pytest.approx(best, abs=0.06)


def test_noise_follows_the_number_of_private_records():
    X, y = draw(600, 4)
    few, many = (
        run_trials(X, y, n_samples=n, epsilon=0.1, estimators=["DPLeastSquares"])[0]
        for n in (600, 60_000)
    )
    assert many.loss < few.loss - 0.1
    assert many.non_private == few.non_private


def test_labels_may_be_anything():
    X, y = draw(120, 5)
    names = np.array(["a", "b", "c", "d", "e", "f"])[y]
    trial = run_trials(
        X,
        names,
        n_samples=10**5,
        epsilon=1.0,
        estimators=["DPLeastSquares"],
        n_repeats=2,
        max_rows=60,
    )[0]
    assert len(trial.accuracies) == 2
    assert trial.accuracy > 0.6
