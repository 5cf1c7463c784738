"""The whole way on real images: needs CIFAR-10 and weights in PRIVFEAT_DATA."""

import os
from pathlib import Path

import numpy as np
import pytest

from privfeat import DPFC, open_features

pytestmark = [pytest.mark.realdata, pytest.mark.slow]


@pytest.fixture
def folder():
    path = Path(os.environ.get("PRIVFEAT_DATA", "."))
    if not (path / "cifar10-jpeg.tar.xz").exists():
        pytest.skip("PRIVFEAT_DATA does not hold cifar10-jpeg.tar.xz")
    return path


def test_features_of_cifar10_separate_its_classes(folder, run, tmp_path):
    """200 images of each split; chance is 10 % or 50 % by how the limit cuts."""
    out = tmp_path / "cifar10.h5"
    weights = folder / "mobilenetv2_100_imagenet.safetensors"
    network = ["--model", "mobilenetv2_100", "--checkpoint", weights]
    pixels = "--resize 96 --crop 96 --mean 0.5 --std 0.5 --model-kwargs pad_type=same"
    source = ["--data", folder / "cifar10-jpeg.tar.xz", "--limit", "5200"]
    status, _, err = run(*source, *network, *pixels.split(), "--out", out, "--quiet")
    assert status == 0, err
    train = open_features(out)["train"]
    assert train.X.shape == (5200, 1280)
    X, y = train.X[4800:], train.y[4800:]  # the border of the first two classes
    assert set(np.unique(y)) == {0, 1}
    with pytest.warns(UserWarning, match="epsilon"):
        clf = DPFC(epsilon=np.inf, classes=[0, 1]).fit(X[::2], y[::2])
    assert clf.score(X[1::2], y[1::2]) > 0.8
