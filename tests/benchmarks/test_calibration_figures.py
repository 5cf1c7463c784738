"""Figures of calibration and of noise, on axes without a screen."""

import batch_noise
import histograms
import numpy as np
import pytest
from matplotlib.figure import Figure

from privfeat.analysis.batches import noise_by_batch_size
from privfeat.analysis.calibration import calibration_report
from privfeat.data import write_features


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (histograms.draw_confidence, "confidence"),
        (histograms.draw_true_class, "true_class"),
    ],
)
def test_histogram_bars_sum_to_one(draw, name):
    p = [[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]]
    report, ax = calibration_report([0, 1, 0], p, n_bins=10), Figure().subplots()
    draw(report, ax)
    heights = [bar.get_height() for bar in ax.patches]
    assert sum(heights) == pytest.approx(1)
    expected = np.histogram(getattr(report, name), 10, (0, 1))[0]
    assert np.array(heights) * 3 == pytest.approx(expected)


def test_noise_has_a_point_for_each_batch_size():
    ax = Figure().subplots()
    sizes = [64, 256]
    settings = noise_by_batch_size(60_000, sizes, epsilon=2.0, delta=1e-5, n_epochs=10)
    batch_noise.draw_noise(settings, ax)
    assert list(ax.get_lines()[0].get_xdata()) == sizes


def test_scripts_write_their_figures(tmp_path, monkeypatch):
    y = np.arange(60) % 3
    part = (np.eye(4, dtype=np.float32)[y], y.astype(np.int64))
    write_features(
        tmp_path / "a.h5", {"train": part, "test": part}, class_names=("a", "b", "c")
    )
    for module, words in (
        (histograms, [str(tmp_path / "a.h5")]),
        (batch_noise, ["--sizes", "512"]),
    ):
        out = tmp_path / f"{module.__name__}.png"
        monkeypatch.setattr("sys.argv", [module.__name__, *words, "--out", str(out)])
        module.main()
        assert out.read_bytes().startswith(b"\x89PNG")
