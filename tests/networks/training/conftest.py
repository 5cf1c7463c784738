"""Fits that fail in the middle, and fits that are charged."""

import numpy as np
import pytest

from privfeat import PrivacyLedger
from tests.networks.dying import make_charged


class InterruptedFit(Exception):
    pass


@pytest.fixture
def interrupted(plant, records):
    """Let a fit fail in the middle of a step, after so many draws."""

    def run(clf, n_draws, data=records):
        left = iter(range(n_draws))
        original = plant.genuine("release of a sum")

        def release(self, *args, **kwargs):
            if next(left, None) is None:
                raise InterruptedFit
            return original(self, *args, **kwargs)

        with plant.context() as patch:
            patch("release of a sum", release)
            with pytest.raises(InterruptedFit):
                clf.fit(*data)
        return clf

    return run


@pytest.fixture
def charged(tmp_path):
    """Return what makes a charged fit in a folder, and its ledger."""
    path = tmp_path / "x.ledger"
    ledger = PrivacyLedger(path, dataset="x", epsilon=500.0, delta=1e-5)
    return lambda name: make_charged(tmp_path / name, ledger), ledger


@pytest.fixture
def of_users():
    """Ten users of one to five records each, in any order."""
    draw = np.random.default_rng(3)
    users = draw.permutation(np.repeat(np.arange(10), [1, 2, 3, 4, 5] * 2))
    return draw.normal(size=(30, 5)), draw.integers(0, 3, 30), users
