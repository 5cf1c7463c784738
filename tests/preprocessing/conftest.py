"""Private steps of every kind, made alike, and records for them."""

import numpy as np
import pytest

from privfeat import preprocessing

OPTIONS = {
    "DPStandardScaler": {"bounds": (-1.0, 1.0)},
}


def make(name, **params):
    return getattr(preprocessing, name)(**{**OPTIONS[name], **params})


@pytest.fixture(params=OPTIONS)
def step(request):
    """Return a function that makes a private step."""
    return lambda **params: make(request.param, **params)


@pytest.fixture(scope="session")
def records():
    """Return rows in [-1, 1], of which some are extreme, and labels."""
    draw = np.random.default_rng(0)
    X = draw.uniform(-0.9, 0.9, size=(60, 3)) * [1.0, 0.5, 0.1]
    X[:4] = [[1, 1, 1], [0, 0, 0], [-1, 1, -1], [5, -9, 1e30]]
    return X, np.arange(60) % 3
