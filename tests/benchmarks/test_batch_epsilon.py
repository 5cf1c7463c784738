"""Epsilon against the batch, at one noise of the mean."""

import json

import batch_epsilon
import pytest

from privfeat.core.accounting.conversions import gaussian_epsilon


def test_full_batches_cost_what_a_gaussian_does(tmp_path, monkeypatch):
    out = tmp_path / "epsilon.json"
    words = "--n 4096 --steps 100 --batches 1024 --times 1000 4000 --out".split()
    monkeypatch.setattr("sys.argv", ["batch_epsilon", *words, str(out)])
    batch_epsilon.main()
    cells = json.loads(out.read_text())["cells"]
    noise = 1000 * batch_epsilon.PRINTED * 4096 / 1024
    exact = gaussian_epsilon(10 / noise, 1e-6)
    assert cells["batch=4096 times=1000"] == pytest.approx(exact, rel=1e-3)
    assert cells["batch=1024 times=1000"] > cells["batch=4096 times=1000"]
    assert cells["batch=4096 times=4000"] < cells["batch=4096 times=1000"] / 2
