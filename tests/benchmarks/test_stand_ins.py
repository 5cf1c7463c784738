"""The commands for the paper's data sets, end to end, on weights and images made here.

The networks have the architecture that the commands name and random weights; folders
have as many classes as the data sets. So the accuracy is chance; all else is real.
"""

import json
import re
import shlex
import sys

import numpy as np
import pytest
import reproduce_tables

from privfeat.data import open_features
from tests.later import Later

timm = Later("timm")
image_module = pytest.importorskip("PIL.Image")
README = reproduce_tables.PUBLISHED.with_name("README.md").read_text(encoding="utf-8")
VIT = "vit_base_patch16_224.augreg_in21k"


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Return a file of random weights of the network that the commands name."""
    from safetensors.torch import save_file

    path = tmp_path_factory.mktemp("weights") / "vit.safetensors"
    network = timm.create_model(VIT, pretrained=False, num_classes=0)
    save_file(network.state_dict(), path)
    return path


def save_image(path, label, rng):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
    pixels[:4] = label % 256
    image_module.fromarray(pixels).save(path, "JPEG")


@pytest.fixture
def imagenet(tmp_path):
    """Return folders of 1,000 classes, as ImageNet has: one image of each."""
    rng = np.random.default_rng(0)
    for label in range(1000):
        name = f"n{label:08}"
        for split in ("train", "val"):
            save_image(tmp_path / "imagenet" / split / name / "0.JPEG", label, rng)
    return tmp_path / "imagenet"


class Cifar100:
    """Stands for torchvision's: 100 classes, one small image of each."""

    classes = tuple(f"class {label}" for label in range(100))

    def __len__(self):
        return 100

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        pixels = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
        return image_module.fromarray(pixels), index


def commands(name):
    """Return the words of the README's two commands of a data set."""
    options = re.search(r'^M="(.*)"$', README, re.M)[1]
    lines = [line for line in README.splitlines() if f"{name}.h5" in line]
    extract = next(line for line in lines if line.startswith("privfeat-extract"))
    tables = next(
        line for line in lines if "--published" in line and "--trials" in line
    )
    return shlex.split(extract.replace("$M", options)), shlex.split(tables)


def run_both(name, data, weights, folder, monkeypatch, n_images):
    """Run the commands with other weights, data and numbers; return what they wrote."""
    from privfeat_extract.cli import main

    extract, tables = commands(name)
    place = extract.index("--data") + 1
    extract[place] = str(data) if data else extract[place]
    if "--data-dir" in extract:
        extract[extract.index("--data-dir") + 1] = str(folder)
    features = folder / f"{name}.h5"
    extract[extract.index("--out") + 1] = str(features)
    few = ["--limit", str(n_images), "--workers", "0", "--batch-size", "8", "--quiet"]
    assert main([*extract[1:], *few, "--checkpoint", str(weights)]) == 0
    tables[tables.index(f"{name}.h5")] = str(features)
    tables[tables.index("--trials") + 1] = "2"
    tables.remove("--ours")
    out = folder / "tables.json"
    few = ["--epochs", "1", "--epsilons", "8", "--out", str(out)]
    # DP-LS takes an eigendecomposition for each class and draw: an hour here
    few += ["--methods", "DP-FC", "DP-Adam"]
    monkeypatch.setattr(sys, "argv", [*tables[1:], *few])
    reproduce_tables.main()
    return open_features(features), json.loads(out.read_text())


@pytest.mark.slow
def test_commands_for_cifar_100_run(tmp_path, weights, monkeypatch):
    place = "timm.data.dataset_factory.create_dataset"
    monkeypatch.setattr(place, lambda *_, **__: Cifar100())
    file, found = run_both("cifar100", None, weights, tmp_path, monkeypatch, 6)
    assert file.n_features == 768
    assert len(file.class_names) == 100
    assert file.metadata["model"].startswith("vit_base_patch16_224")
    assert (file.metadata["resize"], file.metadata["crop"]) == (384, 256)
    assert len(found["cells"]) == 2
    labels = [row[0] for row in found["tables"]["cifar100"]["rows"]]
    assert "DP-FC, paper, ImageNet-21K" in labels


@pytest.mark.slow
def test_commands_for_imagenet_run(tmp_path, weights, imagenet, monkeypatch):
    file, found = run_both("imagenet", imagenet, weights, tmp_path, monkeypatch, 6)
    assert len(file.class_names) == 1000
    assert {len(split) for split in file.values()} == {6}
    assert set(found["cells"]) == {"DP-FC 1, 8", "DP-Adam 1, 8"}
    assert found["settings"]["delta"] == 8e-7
