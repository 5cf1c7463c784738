"""A better backbone beside a worse one, on a few rows."""

import json

import backbones
import numpy as np
import pytest

from privfeat.data import write_features

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.fixture
def files(tmp_path):
    """Return features that tell the class, and features that tell nothing."""
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 100)
    noise = rng.normal(0, 0.1, (200, 4)).astype(np.float32)
    found = {}
    for name, signal in (("worse", 0.0), ("better", 1.0)):
        X = noise + np.float32(signal) * np.eye(2, 4, dtype=np.float32)[y]
        found[name] = tmp_path / f"{name}.h5"
        split = X, y
        write_features(
            found[name], {"train": split, "test": split}, class_names=["a", "b"]
        )
    return [f"--file={name}={path}" for name, path in found.items()]


@pytest.mark.slow
def test_the_last_row_is_the_gain_of_the_last_backbone(files, tmp_path):
    pytest.importorskip("matplotlib")
    out, figure = tmp_path / "out.json", tmp_path / "figure.png"
    words = ["--epsilons", "8", "inf", "--repeats", "2", "--out", str(out)]
    backbones.main([*files, *words, "--figure", str(figure)])
    table = json.loads(out.read_text())["tables"]["backbones"]
    assert table["header"] == ["epsilon", "8", "none"]
    (worse, first, _), (better, second, free), (gain, *gained) = table["rows"]
    assert (worse, better, gain) == ("worse", "better", "gain")
    assert free == "100.00"
    means = [float(cell.split(" ")[0]) for cell in (first, second)]
    assert float(gained[0]) == pytest.approx(means[1] - means[0], abs=0.1)
    assert float(gained[1]) > 20
    assert figure.exists()


def test_a_backbone_is_named_by_its_file(tmp_path):
    args = backbones.argparse.Namespace(
        network=["small=w.safetensors"], file=["big=b.h5", "c.h5"], images=None
    )
    assert list(backbones.sets_of(args, tmp_path)) == ["small", "big", "c"]


def test_nothing_to_compare_is_refused():
    with pytest.raises(SystemExit):
        backbones.main(["--network", "small=w.safetensors"])
