"""The benchmarks of DP-SGD: what they read, and that rivals get the same network."""

import tarfile

import numpy as np
import pytest

pytest.importorskip("flax")
dpsgd_accuracy = pytest.importorskip("dpsgd_accuracy")
finetuning = pytest.importorskip("_finetuning")
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


def test_first_records_of_each_class_are_those_that_are_read(images):
    labels = np.array([2, 0, 2, 1, 0, 2])
    assert dpsgd_accuracy.first_of_each(labels, 1).tolist() == [0, 1, 3]
    assert dpsgd_accuracy.first_of_each(labels, None).tolist() == list(range(6))
    assert dpsgd_accuracy.per_class(None, 10) is None
    assert dpsgd_accuracy.per_class(2000, 10) == 200
    X, _, _, _ = dpsgd_accuracy.read_images(images, 4, 2)
    assert X[:, 0, 0, 0].tolist() == pytest.approx([10, 200], abs=1)


def test_results_are_kept_and_not_computed_again(tmp_path):
    path, settings = tmp_path / "kept.json", {"epsilon": 1.0}
    cells = dpsgd_accuracy.Cells(path, settings)
    assert cells.get("a", lambda: [0.5]) == [0.5]
    again = dpsgd_accuracy.Cells(path, settings)
    assert again.get("a", lambda: pytest.fail("computed again")) == [0.5]


@pytest.fixture(scope="module")
def mobilenet():
    import jax
    from flax import nnx

    from privfeat.networks.models import MobileNetV2

    stages = (((1, 4, 1, 1),), ((2, 6, 2, 2),), ((2, 6, 1, 1),), ((2, 8, 1, 1),))
    rngs = nnx.Rngs(params=jax.random.key(0))
    return MobileNetV2((16, 16, 3), 3, stages=stages, n_features=10, rngs=rngs)


@pytest.mark.slow
def test_frozen_part_and_trained_part_are_the_whole_network(mobilenet):
    """From many groups to few, and each by itself; more images than one part."""
    from privfeat.networks.images.augment import to_inputs

    draw = np.random.default_rng(0)
    splits = tuple(draw.integers(0, 255, (n, 8, 8, 3), np.uint8) for n in (66, 3))
    large = [to_inputs(finetuning.enlarged(images, 16)) for images in splits]
    in_order = finetuning.FrozenPart(mobilenet, splits, 16)
    for n_groups in (2, 1, 0):
        alone = finetuning.FrozenPart(mobilenet, splits, 16)
        trained = finetuning.trained_part(mobilenet, n_groups)
        for part in (in_order, alone):
            for images, inputs in zip(large, part.before(n_groups), strict=True):
                assert len(inputs) == len(images)
                np.testing.assert_allclose(
                    trained(inputs), mobilenet(images), rtol=1e-4, atol=1e-5
                )
    with pytest.raises(ValueError, match="from many to few"):
        in_order.before(1)


@pytest.mark.parametrize("n_groups", [0, 1, 2])
def test_trained_part_holds_what_frozen_groups_leave(mobilenet, n_groups):
    from privfeat.networks.engine.network import Network

    whole = Network(mobilenet)
    moving = set(whole.initial) - whole.frozen_names(4 - n_groups)
    part = Network(finetuning.trained_part(mobilenet, n_groups))
    assert sum(leaf.size for leaf in part.initial.values()) == sum(
        whole.initial[name].size for name in moving
    )


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

    from privfeat.networks.engine.network import Network
    from privfeat.networks.weights import build

    rngs = nnx.Rngs(params=jax.random.key(0))
    ours = Network(build(name, contenders.SHAPES[name], 10, rngs=rngs))
    theirs = contenders.torch_network(name).parameters()
    assert sum(leaf.numel() for leaf in theirs) == sum(
        leaf.size for leaf in ours.initial.values()
    )
