"""A small private search, and the runs that it makes."""

import numpy as np
import pytest

from privfeat import DPFC, DPRandomizedSearch
from privfeat.selection.runs import Runner


@pytest.fixture
def data():
    """Sixty records, four features, three separated classes."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2], [16, 20, 24]))
    return rng.normal(size=(60, 4)) + 3.0 * np.eye(3, 4)[y], y


@pytest.fixture
def make():
    """Return a function that makes a fast search."""

    def make(estimator=None, candidates=None, **options):
        estimator = DPFC(n_iter=2, classes=range(3)) if estimator is None else estimator
        if candidates is None:
            candidates = {"learning_rate": [0.5, 2.0], "ridge": [None, 1.0]}
        return DPRandomizedSearch(
            estimator, candidates, **({"epsilon": 2.0, "mean_runs": 3.0} | options)
        )

    return make


@pytest.fixture
def runs(monkeypatch):
    """Record every run that a search makes."""
    seen, genuine = [], Runner._run

    def run(self, X, y, score):
        seen.append(genuine(self, X, y, score))
        return seen[-1]

    monkeypatch.setattr(Runner, "_run", run)
    return seen


@pytest.fixture
def five_runs(monkeypatch):
    monkeypatch.setattr("privfeat.core.noise.draws.number_of_runs", lambda *_: 5)
