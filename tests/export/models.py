"""Models that are fitted in a second."""

import numpy as np
from sklearn.pipeline import make_pipeline

from privfeat import DPLeastSquares, DPSGDClassifier, PublicColumns

NUMBER = {"kind": "numeric", "bounds": [10, 50]}
ALWAYS = {"always": {"kind": "numeric", "bounds": [-1, 1]}}


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
