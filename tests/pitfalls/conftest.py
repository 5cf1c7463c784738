"""One test for each row of docs/pitfalls.md, and a fault that it notices.

``check_NN`` states the property, ``test_NN_...`` runs it, and ``test_NN_notices_...``
plants the fault and expects the check to fail. Numbers are never reused. The planted
faults test the tests, not the library, and are run with the slow tests.
"""

import hashlib
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest

from privfeat import DPFC, DPAdamLinear, DPLeastSquares
from privfeat.persistence import model_folder
from tests.linear.conftest import spy, three_classes

__all__ = ["spy", "three_classes"]
SECRET = "patient0815"  # which no message may show


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
