import shutil

import numpy as np
import pytest

from privfeat.data import open_features

CLASSES = ("cat", "dog")


def save_images(folder, count, seed):
    """Write ``count`` images of each class, of two sizes, two of them grey."""
    image_module = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(seed)
    for name in CLASSES:
        (folder / name).mkdir(parents=True)
        for i in range(count):
            shape = (24, 30, 3) if i % 2 else (30, 24, 3)
            pixels = rng.integers(0, 256, shape, dtype=np.uint8)
            if i == 1:
                pixels = pixels[..., 0]
            image_module.fromarray(pixels).save(folder / name / f"{i}.png")


@pytest.fixture
def images(tmp_path):
    """Return an image folder: 10 training and 4 test images of two classes."""
    save_images(tmp_path / "images" / "train", 5, seed=1)
    save_images(tmp_path / "images" / "test", 2, seed=2)
    return tmp_path / "images"


@pytest.fixture
def run(capsys):
    """Return a function that runs the command: status, stdout, stderr."""
    from privfeat_extract.cli import main

    def run_command(*argv):
        try:
            status = main([str(part) for part in argv])
        except SystemExit as stopped:
            status = stopped.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run_command


@pytest.fixture
def scatter(run, tmp_path):
    """Return a function that extracts scattering features into ``out.h5``."""

    def extract(data, *argv):
        sizes = ("--resize", 16, "--crop", 16, "--batch-size", 2, "--quiet")
        out = ("--out", tmp_path / "out.h5")
        return run("--data", data, "--model", "scattering", *sizes, *out, *argv)

    return extract


@pytest.fixture
def network(run, tmp_path):
    """Return a function that extracts features of a small network into ``out.h5``."""
    pytest.importorskip("timm")

    def extract(data, *argv):
        model = () if "--model" in argv else ("--model", "test_resnet")
        weights = () if "--checkpoint" in argv else ("--no-pretrained",)
        sizes = ("--resize", 40, "--crop", 32, "--batch-size", 4, "--quiet")
        out = ("--workers", 0, "--dtype", "float32", "--out", tmp_path / "out.h5")
        return run("--data", data, *model, *weights, *sizes, *out, *argv)

    return extract


@pytest.fixture
def scatter_as(scatter, monkeypatch):
    """Return a function that runs the command in this process, under a rank."""

    def run_as(number, count, data, *argv):
        monkeypatch.setenv("RANK", str(number))
        monkeypatch.setenv("WORLD_SIZE", str(count))
        status = scatter(data, *argv)
        monkeypatch.delenv("RANK")
        monkeypatch.delenv("WORLD_SIZE")
        return status

    return run_as


@pytest.fixture
def single(images, scatter, tmp_path):
    """Return the file that one process writes."""
    assert scatter(images)[0] == 0
    return open_features(shutil.move(tmp_path / "out.h5", tmp_path / "single.h5"))


@pytest.fixture
def joined(images, scatter_as, tmp_path):
    for number in (0, 1):
        assert scatter_as(number, 2, images)[0] == 0
    return tmp_path / "out.h5"


@pytest.fixture
def shards(joined):
    return sorted((joined.parent / "out.h5.shards").iterdir())
