import math

import ablation
import numpy as np
import pytest
from matplotlib.figure import Figure

from privfeat import DPAdamLinear, DPSGDClassifier
from privfeat.data import write_features

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.fixture
def blobs():
    """Return rows near three axes, and their classes."""
    y = np.arange(600) % 3
    return np.eye(5)[y] + 0.5 * np.random.default_rng(0).normal(size=(600, 5)), y


def test_ablation_fits_every_cell(blobs):
    clf = DPAdamLinear(classes=range(3), epsilon=8, n_iter=10)
    clip_norms, rates = [0.1, 1.0], [1e-6, 0.1, 1.0]
    values = ablation.clip_norm_ablation(clf, clip_norms, rates, *blobs, *blobs)
    assert set(values) == set(ablation.METRICS)
    assert all(value.shape == (2, 3) for value in values.values())
    # without steps, nothing is learned, and nothing is believed
    assert values["nll"][:, 0] == pytest.approx(math.log(3), abs=1e-3)
    assert values["accuracy"][0, 1] > 0.7
    ax = Figure().subplots()
    ablation.draw_map(values["ece"], clip_norms, rates, ax)
    assert len(ax.texts) == 6
    assert ax.get_xlabel() == "learning rate"


def test_ablation_of_a_network_by_its_clip_norm():
    y = np.arange(60) % 3
    low = (80 * y)[:, None, None, None]
    X = np.random.default_rng(0).integers(low, low + 90, (60, 4, 4, 1)).astype(np.uint8)
    clf = DPSGDClassifier(
        model="mlp",
        classes=range(3),
        noise_multiplier=1.0,
        n_iter=2,
        expected_batch_size=None,
    )
    values = ablation.clip_norm_ablation(
        clf, [0.1, 1.0], [0.01], X, y, X, y, clip_parameter="clip_norm"
    )
    assert values["ece"].shape == (2, 1)
    assert np.all(np.isfinite(values["nll"]))


def test_script_writes_the_map(blobs, tmp_path, monkeypatch, capsys):
    X, y = blobs
    path, out = tmp_path / "features.h5", tmp_path / "map.png"
    part = (X.astype(np.float32), y.astype(np.int64))
    write_features(path, {"train": part, "test": part}, class_names=("a", "b", "c"))
    few = ("--clip-norms", "1", "--rates", "0.1", "--n-iter", "2")
    monkeypatch.setattr("sys.argv", ["ablation", str(path), *few, "--out", str(out)])
    ablation.main()
    assert out.exists()
    header, row, last = capsys.readouterr().out.splitlines()
    assert header == "ece, by rate 0.1"
    assert row.startswith("clip norm 1: 0.")
    assert last == f"{out} written"
