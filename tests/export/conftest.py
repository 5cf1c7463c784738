"""Rows, and models fitted to them."""

import numpy as np
import pytest

from privfeat.metrics import private_evaluation
from privfeat.metrics.files import save_evaluation

N_FEATURES = 4


@pytest.fixture(scope="session")
def rows():
    """Return rows to fit, with small and large ones and one of zeros among them."""
    draw = np.random.default_rng(0).normal(size=(40, N_FEATURES))
    return np.vstack([draw, np.zeros((1, N_FEATURES)), 1e-3 * draw[:2], 99 * draw[:2]])


@pytest.fixture
def fit(rows):
    """Return a function that fits to rows of so many classes."""

    def fitted(cls, n_classes=3, **params):
        names = params.pop("names", None)
        classes = np.arange(n_classes) if names is None else np.asarray(names)
        clf = cls(epsilon=5.0, classes=classes, **params)
        return clf.fit(rows, classes[np.arange(len(rows)) % n_classes])

    return fitted


@pytest.fixture
def evaluate(rows):
    """Return a function that saves an evaluation of a model beside it."""

    def evaluated(model, folder, **options):
        found = private_evaluation(model, rows, np.arange(len(rows)) % 3, **options)
        save_evaluation(found, folder, test="b.h5")

    return evaluated
