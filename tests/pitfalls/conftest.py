"""One test for each row of docs/pitfalls.md, and a fault that it notices.

``check_NN`` states the property, ``test_NN_...`` runs it, and ``test_NN_notices_...``
plants the fault and expects the check to fail. Numbers are never reused. The planted
faults test the tests, not the library, and are run with the slow tests.
"""

import hashlib
import io
import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest

from privfeat import (
    DPFC,
    DPAdamLinear,
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
from privfeat.persistence import model_folder
from tests.linear.conftest import spy, three_classes
from tests.networks.tiny import TINY

__all__ = ["spy", "three_classes"]
SECRET = "patient0815"  # which no message may show
N = 6  # records that `every_edge` gets


def pytest_collection_modifyitems(items):
    """Mark the planted faults, of which this hook sees those of other folders too."""
    for item in items:
        if item.path.parent == Path(__file__).parent and "_notices_" in item.name:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def make():
    """Return a function that makes a seeded estimator of three classes, fast to fit."""
    few_steps = {DPAdamLinear: {"n_iter": 2}, DPFC: {"n_iter": 2}}

    def make_estimator(cls=DPLeastSquares, **options):
        given = {"epsilon": 2.0, "classes": range(3), "random_state": 0}
        return cls(**(given | few_steps.get(cls, {}) | options))

    return make_estimator


@pytest.fixture
def one_less(three_classes):
    """Return two data sets: the second lacks the fifth record of the first."""
    X, y = three_classes
    return (X, y), (np.delete(X, 4, axis=0), np.delete(y, 4))


class Trap:
    """Tells when it is unpickled."""

    sprung = False

    def __reduce__(self):
        return spring, ()


def spring():
    Trap.sprung = True


def replace_arrays(folder, **arrays):
    """Put other arrays into a saved model, with the checksums that belong to them."""
    document = json.loads((folder / "model.json").read_text())
    content = io.BytesIO()
    np.savez(content, **arrays)
    (folder / document["arrays"]["file"]).write_bytes(content.getvalue())
    document["arrays"]["sha256"] = hashlib.sha256(content.getvalue()).hexdigest()
    document["sha256"] = model_folder.digest(document)
    (folder / "model.json").write_text(json.dumps(document))


def prices(statement):
    """Return the rho of a draw by its stddev.

    A symmetric matrix is drawn with the stddev of its entries off the diagonal.
    """
    return {
        record.noise_stddev * factor: record.noise_multiplier**-2 / 2
        for record in statement.releases
        for factor in (1.0, math.sqrt(0.5))
    }


@pytest.fixture
def records():
    rng = np.random.default_rng(3)
    return rng.normal(size=(30, 5)), rng.integers(0, 3, 30)


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


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    return every_edge(tmp_path_factory.mktemp("files"))
