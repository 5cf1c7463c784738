"""Fits that fail in the middle, and fits that are charged."""

import pytest

from privfeat import (
    PrivacyLedger,
)
from privfeat.core.noise import draws as noise
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from tests.networks.dying import make_charged


class InterruptedFit(Exception):
    pass


@pytest.fixture
def drawn(monkeypatch):
    """Collect the noise of all fits."""
    draws = []
    original = noise.gaussian

    def gaussian(key, shape, stddev):
        draws.append(original(key, shape, stddev))
        return draws[-1]

    monkeypatch.setattr(noise, "gaussian", gaussian)
    return draws


@pytest.fixture
def interrupted(monkeypatch, records):
    """Let a fit fail in the middle of a step, after so many draws."""

    def run(clf, n_draws, data=records):
        left = iter(range(n_draws))
        original = GaussianMechanism.release

        def release(self, *args, **kwargs):
            if next(left, None) is None:
                raise InterruptedFit
            return original(self, *args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(GaussianMechanism, "release", release)
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
