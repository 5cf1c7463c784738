"""Rows, and models fitted to them."""

import hashlib

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from privfeat import DPLeastSquares, DPSGDClassifier, PublicColumns
from privfeat.metrics import private_evaluation
from privfeat.metrics.files import save_evaluation

N_FEATURES = 4
NUMBER = {"kind": "numeric", "bounds": [10, 50]}
ALWAYS = {"always": {"kind": "numeric", "bounds": [-1, 1]}}


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


def fitted(declared):
    """Return a pipeline of a column and one that is always there."""
    columns = PublicColumns({"column": declared, **ALWAYS})
    width = len(columns.get_feature_names_out())
    X = np.random.default_rng(0).normal(size=(40, width))
    clf = DPLeastSquares(epsilon=9.0, classes=["no", "yes"], row_scaling="clip")
    clf.fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    return make_pipeline(columns, clf)


def tiny_network(n_classes=2):
    clf = DPSGDClassifier(
        model="mlp",
        classes=range(n_classes),
        n_iter=1,
        expected_batch_size=10,
        noise_multiplier=9.0,
    )
    X = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    return clf.fit(X, np.arange(30) % n_classes)


@pytest.fixture
def evaluate(rows):
    """Return a function that saves an evaluation of a model beside it."""

    def evaluated(model, folder, **options):
        found = private_evaluation(model, rows, np.arange(len(rows)) % 3, **options)
        save_evaluation(found, folder, test="b.h5")

    return evaluated


def write_card(path, folder):
    """Write a card of the model in a folder, which names it by its checksum."""
    named = hashlib.sha256((folder / "model.json").read_bytes()).hexdigest()
    path.write_text(f"---\nlicense: mit\n---\n# Flowers\n\nmodel.json: `{named}`\n")
    return path
