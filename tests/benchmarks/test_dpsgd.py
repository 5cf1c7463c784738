"""The benchmarks of DP-SGD: what they read, and that rivals get the same network."""

import tarfile

import numpy as np
import pytest

pytest.importorskip("flax")
dpsgd_accuracy = pytest.importorskip("dpsgd_accuracy")
contenders = pytest.importorskip("_dpsgd_contenders")


@pytest.fixture
def images(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    root = tmp_path / "images"
    for split in ("train", "test"):
        for name, grey in (("b", 200), ("a", 10)):
            (root / split / name).mkdir(parents=True)
            for number in range(3):
                picture = Image.new("RGB", (12, 8), (grey + number,) * 3)
                picture.save(root / split / name / f"{number}.png")
    return root


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("n_records", "n_read"), [(None, 6), (4, 4)])
def test_images_are_read_from_folders_and_archives(
    images, tmp_path, packed, n_records, n_read
):
    path = images
    if packed:
        path = tmp_path / "images.tar.xz"
        with tarfile.open(path, "w:xz") as archive:
            for split in ("train", "test"):
                archive.add(images / split, split)
    X, y, X_test, y_test = dpsgd_accuracy.read_images(path, 4, n_records)
    assert X.shape == X_test.shape == (n_read, 4, 4, 3)
    assert y.tolist() == y_test.tolist() == np.repeat([0, 1], n_read // 2).tolist()
    assert np.all((X[:, 0, 0, 0] > 100) == (y == 1))


def test_contenders_that_fail_have_a_reason_in_the_table():
    from dpsgd_speed import cells

    assert cells({"reason": "not run"}) == ["not run", "-", "-"]
    found = {"seconds": 0.25, "peak_mib": 500.0, "loaded_mib": 300.0}
    assert cells(found) == ["0.250", "500", "200"]


@pytest.mark.parametrize("name", list(contenders.SHAPES))
def test_torch_gets_the_network_of_jax(name):
    pytest.importorskip("torch")
    import jax
    from flax import nnx

    from privfeat.trainers.model import Network, count
    from privfeat.trainers.networks import build

    rngs = nnx.Rngs(params=jax.random.key(0))
    ours = Network(build(name, contenders.SHAPES[name], 10, rngs=rngs))
    theirs = contenders.torch_network(name).parameters()
    assert sum(leaf.numel() for leaf in theirs) == count(ours.initial)
