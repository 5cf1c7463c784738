"""A small private search, and the runs that it makes."""

import math

import numpy as np
import pytest

from privfeat import (
    DPFC,
    DPLeastSquares,
    DPRandomizedSearch,
    HashKFold,
    PrivacyLedger,
)


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
def runs(plant):
    """Record every run that a search makes."""
    seen, genuine = [], plant.genuine("one run of a search")

    def run(self, X, y, score):
        seen.append(genuine(self, X, y, score))
        return seen[-1]

    plant("one run of a search", run)
    return seen


@pytest.fixture
def five_runs(plant):
    plant("number of runs", lambda *_: 5)


NAN, INF = math.nan, math.inf


N = 24
FOLDS = HashKFold(3, key=0)


@pytest.fixture
def labelled():
    rng = np.random.default_rng(1)
    y = np.arange(N) % 2
    return rng.normal(size=(N, 3)) + y[:, None], y


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "x.ledger", dataset="x", epsilon=5.0, delta=1e-5)


@pytest.fixture
def fit(ledger):
    return DPLeastSquares(rho=0.005, classes=[0, 1], ledger=ledger)
