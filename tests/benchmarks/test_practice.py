"""The tools on real data, run on a few rows and images in their place."""

import json

import numpy as np
import pytest

from privfeat.data import write_features

pytest.importorskip("flax")
practice = pytest.importorskip("practice")


@pytest.fixture
def features(tmp_path):
    rng = np.random.default_rng(0)
    splits = {}
    for name, n in (("train", 120), ("test", 30)):
        y = np.arange(n) % 3
        X = np.eye(5)[y] + 0.3 * rng.normal(size=(n, 5))
        splits[name] = (X.astype(np.float32), y.astype(np.int64))
    write_features(tmp_path / "features.h5", splits, class_names=("a", "b", "c"))
    return tmp_path / "features.h5"


@pytest.fixture
def images(write_images):
    return write_images(16, 8)


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["practice", *map(str, arguments)])
    practice.main()


def test_clip_norms_of_features_are_kept(features, tmp_path, monkeypatch, capsys):
    out = tmp_path / "practice.json"
    few = ("--clip-norms", 0.1, 1, "--epsilons", 8, "--n-iter", 5, "--out", out)
    run(monkeypatch, "--features", features, *few)
    printed = capsys.readouterr().out
    assert "| epsilon | clip norm | accuracy | ECE" in printed
    assert "ECE, scaled" in printed
    cells = json.loads(out.read_text())["cells"]
    assert set(cells) == {f"DPFC epsilon=8 clip_norm={norm}" for norm in ("0.1", "1")}
    assert all(0 <= cell["accuracy"] <= 1 for cell in cells.values())
    monkeypatch.setattr(practice, "DPFC", None)  # no cell is run a second time
    run(monkeypatch, "--features", features, *few)
    assert capsys.readouterr().out == printed


@pytest.mark.slow
def test_network_and_batch_law_are_measured(images, tmp_path, monkeypatch, capsys):
    few = ("--model", "mlp", "--size", 4, "--records", 32, "--network-clip-norms", 1)
    few += ("--network-epsilons", 8, "--epochs", 2, "--batch", 16)
    few += ("--law-batches", 4, 8, "--law-target", 16, "--law-steps", 4)
    few += ("--law-runs", 2, "--out", tmp_path / "practice.json")
    run(monkeypatch, "--images", images, *few)
    printed = capsys.readouterr().out
    assert "Batch law, mlp, 4 steps" in printed
    assert "| 16    |" in printed
    cells = json.loads((tmp_path / "practice.json").read_text())["cells"]
    assert sum(key.startswith("law batch=") for key in cells) == 5
    epsilons = [cells[f"law batch={b} seed=0"]["epsilon"] for b in (4, 8, 16)]
    assert epsilons[0] > epsilons[1] > epsilons[2]
