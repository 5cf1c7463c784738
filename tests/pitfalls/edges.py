"""Where private data enters: each function, of X or y or groups."""

import warnings

import numpy as np
import pytest

from privfeat import (
    DPFC,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPRandomizedSearch,
    DPSGDClassifier,
    DPSGDRegressor,
    HashKFold,
    TemperatureScaling,
    audit,
)
from privfeat.analysis.calibration import calibration_report
from privfeat.data import FeatureWriter, write_features
from tests.networks.tiny import TINY

N = 6


def every_edge(folder):
    """Return every function that private data enters by, of X or y or groups."""
    path = folder / "features.h5"

    def written(*split):
        write_features(path, {"train": split}, overwrite=True)

    def appended(features, labels, groups=None):
        with FeatureWriter(path, n_features=2, overwrite=True) as writer:
            writer.append("train", features, labels, groups=groups)

    X = np.arange(2.0 * N).reshape(N, 2)
    y = np.array([0, 1] * (N // 2))
    linear = {"epsilon": 1.0, "classes": [0, 1]}
    small = TINY | {"classes": [0, 1], "n_iter": 1, "expected_batch_size": None}
    numbers = {name: small[name] for name in small if name != "classes"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = DPFC(**linear, n_iter=1).fit(X, y)
        named = DPLeastSquares(epsilon=1.0, classes=["a", "b"])
        regressor = DPLeastSquaresRegressor(epsilon=1.0, target_bounds=(0, 1)).fit(X, y)
        network = DPSGDClassifier(**small).fit(X, y)
    search = DPRandomizedSearch(DPFC(**linear, n_iter=1), {"clip_norm": [1.0]})
    return {
        "fit X": lambda odd: DPFC(**linear, n_iter=1).fit(odd, y),
        "fit y": lambda odd: DPFC(**linear, n_iter=1).fit(X, odd),
        "fit y of strings": lambda odd: named.fit(X, odd),
        "fit y without classes": lambda odd: DPLeastSquares(epsilon=1.0).fit(X, odd),
        "fit groups": lambda odd: DPFC(**linear, n_iter=1, max_group_size=1).fit(
            X, y, groups=odd
        ),
        "predict": fitted.predict,
        "score y": lambda odd: fitted.score(X, odd),
        "regressor y": lambda odd: DPLeastSquaresRegressor(epsilon=1.0).fit(X, odd),
        "regressor score": lambda odd: regressor.score(X, odd),
        "network X": lambda odd: DPSGDClassifier(**small).fit(odd, y),
        "network y": lambda odd: DPSGDClassifier(**small).fit(X, odd),
        "network groups": lambda odd: DPSGDClassifier(**small, max_group_size=1).fit(
            X, y, groups=odd
        ),
        "network predict": network.predict,
        "network score": lambda odd: network.score(X, odd),
        "network regressor y": lambda odd: DPSGDRegressor(**numbers).fit(X, odd),
        "temperature X": lambda odd: TemperatureScaling(fitted).fit(odd, y),
        "temperature y": lambda odd: TemperatureScaling(fitted).fit(X, odd),
        "search X": lambda odd: search.fit(odd, y),
        "search y": lambda odd: search.fit(X, odd),
        "replay X": lambda odd: audit.replay(fitted, odd, y, record=0),
        "replay y": lambda odd: audit.replay(fitted, X, odd, record=0),
        "write X": lambda odd: written(odd, y),
        "write y": lambda odd: written(X, odd),
        "write groups": lambda odd: written(X, y, odd),
        "append X": lambda odd: appended(odd, y),
        "append y": lambda odd: appended(X, odd),
        "append groups": lambda odd: appended(X, y, odd),
        "calibration": lambda odd: calibration_report(odd, np.full((N, 2), 0.5)),
        "folds X": lambda odd: [*HashKFold(2).split(odd)],
        "folds groups": lambda odd: [*HashKFold(2).split(X, groups=odd)],
    }


EDGES = """fit X|fit y|fit y of strings|fit y without classes|fit groups|predict|score y
regressor y|regressor score|network X|network y|network groups|network predict
network score|network regressor y|temperature X|temperature y|search X|search y
replay X|replay y|calibration|folds X|folds groups|write X|write y|write groups
append X|append y|append groups""".replace("\n", "|").split("|")
SLOW = {"network y", "network groups", "network score", "network regressor y"}


def of_each_edge(without=()):
    """Return a mark that runs a test at each edge but these."""
    slow = pytest.mark.slow
    edges = [edge for edge in EDGES if edge not in without]
    return pytest.mark.parametrize(
        "edge", [pytest.param(e, marks=slow if e in SLOW else ()) for e in edges]
    )
