import json
import sys
from pathlib import Path

import numpy as np
import pytest

from privfeat import DPLeastSquares

GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.fixture(scope="session")
def golden_tan():
    return json.loads((GOLDEN / "tan.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def blobs():
    """Return rows near three axes, with names for labels."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    X = np.eye(5)[y] + 0.5 * rng.normal(size=(600, 5))
    return X, np.array(["ant", "bee", "cat"])[y]


@pytest.fixture(scope="session")
def fitted(blobs):
    """Return a private classifier of the blobs."""
    return DPLeastSquares(epsilon=8, classes=["ant", "bee", "cat"]).fit(*blobs)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
