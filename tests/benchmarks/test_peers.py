"""The contenders, and how the table shows one that did not run."""

import math
from types import SimpleNamespace

import _contenders
import numpy as np
import peers
import pytest

from privfeat.core.accounting.conversions import gaussian_epsilon

GRADIENTS = "vmap(grad) DP-GD"


@pytest.fixture
def data():
    arrays = peers.made(403, 6, 3)
    return SimpleNamespace(**arrays, n_classes=3)


@pytest.fixture
def options():
    return SimpleNamespace(
        epsilon=4.0, delta=1e-5, rates=(8.0, 32.0), steps=6, repeats=2
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("steps", [1, 100])
def test_gaussian_multiplier_meets_our_accounting(epsilon, steps):
    multiplier = _contenders.gaussian_multiplier(epsilon, 1e-5, steps)
    found = gaussian_epsilon(math.sqrt(steps) / multiplier, 1e-5)
    assert found == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("name", [GRADIENTS, "non-private", "DPLeastSquares"])
def test_measure_reports_a_fit(name, data, options):
    found = _contenders.measure(name, data, options)
    assert len(found["accuracy"]) == options.repeats
    assert np.mean(found["accuracy"]) > 0.5
    assert found["first_seconds"] > 0
    assert found["seconds"] > 0
    assert found["peak_mib"] >= found["loaded_mib"] > 0
    assert str(found["setting"]) in found["tried"]


def test_gradients_do_not_depend_on_batches(data, options, monkeypatch):
    whole = _contenders.per_record_gradients(data, options).fit(8.0, 0)
    one = 4 * data.X.shape[1] * data.n_classes
    monkeypatch.setattr(_contenders, "BATCH_BYTES", 50 * one)  # 9 batches, 47 empty
    parts = _contenders.per_record_gradients(data, options).fit(8.0, 0)
    np.testing.assert_array_equal(whole(data.X_test), parts(data.X_test))


def test_table_says_what_did_not_run():
    found = {
        "seconds": 1.234,
        "first_seconds": 5.0,
        "accuracy": [0.5, 0.75],
        "peak_mib": 300.0,
        "loaded_mib": 100.0,
        "epsilon": 1.0,
    }
    table = peers.table({"DPFC": found, "opacus DP-SGD": peers.NOT_RUN})
    *_, ours, theirs = table.splitlines()
    cells = [cell.strip() for cell in ours.strip("|").split("|")]
    assert cells == ["DPFC", "1.23", "5.00", "300", "200", "62.50", "1"]
    assert theirs.split("|")[2].strip() == "not run"
