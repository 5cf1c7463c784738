from types import SimpleNamespace

import numpy as np
import pytest

from privfeat.data import open_features
from privfeat_extract.timm_data import open_timm

image_module = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.usefixtures("with_timm")

HERE = ("--data-dir", ".")


class Listed:
    """Stands for a torchvision data set."""

    classes = ("zero", "one", "two")

    def __init__(self, broken=None):
        self.broken = broken

    def __len__(self):
        return 7

    def __getitem__(self, index):
        if index == self.broken:
            raise OSError("truncated")
        return image_module.new("RGB", (20, 20), (index * 30, 9, 9)), index % 3


class Misplacing:
    """Stands for timm's ``ImageDataset``, which replaces a bad image by the next."""

    def __init__(self, folder):
        self.reader = [(open(folder / f"{i}.png", "rb"), i % 2) for i in range(3)]
        self.filename = None

    def __len__(self):
        return len(self.reader)

    def __getitem__(self, index):
        raise AssertionError("must not be asked")


@pytest.fixture
def provide(monkeypatch):
    """Return a function that sets what ``create_dataset`` returns."""

    def set_dataset(dataset):
        place = "timm.data.dataset_factory.create_dataset"
        monkeypatch.setattr(place, lambda *a, **k: dataset)

    return set_dataset


def test_timm_data_that_is_listed_is_extracted(provide, network, tmp_path):
    provide(Listed())
    assert network("torch/cifar10", *HERE)[0] == 0
    file = open_features(tmp_path / "out.h5")
    assert set(file) == {"train", "test"}
    assert file.class_names == ("zero", "one", "two")
    np.testing.assert_array_equal(file["train"].y, [0, 1, 2, 0, 1, 2, 0])
    assert len(file["train"].metadata["file_list_sha256"]) == 64


def test_timm_data_is_shared_by_processes(provide, network, tmp_path, monkeypatch):
    """Its file list is known afterwards alone, so that of the joined file is made."""
    provide(Listed())
    assert network("torch/cifar10", *HERE)[0] == 0
    single = open_features(tmp_path / "out.h5")["train"]
    rows, labels, known = single.X[:], single.y, single.metadata["file_list_sha256"]
    (tmp_path / "out.h5").unlink()
    monkeypatch.setenv("WORLD_SIZE", "2")
    for number in ("1", "0"):
        monkeypatch.setenv("RANK", number)
        status, _, err = network("torch/cifar10", *HERE)
        assert status == 0, err
    joined = open_features(tmp_path / "out.h5")["train"]
    np.testing.assert_allclose(joined.X[:], rows, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(joined.y, labels)
    assert joined.metadata["file_list_sha256"] == known
    assert len(list((tmp_path / "out.h5.shards").iterdir())) == 2


def test_timm_data_of_another_length_is_not_joined(
    provide, network, tmp_path, monkeypatch
):
    monkeypatch.setenv("WORLD_SIZE", "2")
    for number, length in (("0", 7), ("1", 6)):
        monkeypatch.setattr(Listed, "__len__", lambda self, length=length: length)
        provide(Listed())
        monkeypatch.setenv("RANK", number)
        status, out, _ = network("torch/cifar10", *HERE)
        assert status == 0
        assert "1 of 2 shards to come" in out
    assert not (tmp_path / "out.h5").exists()


class Unlabelled(Listed):
    """Stands for a test split whose labels are secret."""

    def __getitem__(self, index):
        return super().__getitem__(index)[0], None if index == 6 else 0


def test_timm_data_without_labels_is_refused(provide, network, tmp_path):
    provide(Unlabelled())
    status, _, err = network("torch/cifar10", *HERE, "--workers", 1)
    assert status == 1
    assert "split 'train' must have a label >= 0 for every image" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "split", ["train[:300]", "train[80%:]", "train+test", "shards-{0..3}.tar|4000"]
)
def test_timm_data_is_not_cut_by_place(provide, network, tmp_path, split):
    """One record less would let another one into the part."""
    provide(Listed())
    status, _, err = network("hfds/some", "--splits", split)
    assert status == 1
    assert f"--splits must name whole splits of hfds/some, got {split!r}" in err
    assert not (tmp_path / "out.h5").exists()


class LabelledOtherwise(Listed):
    """Stands for a data set with a target, or the names of classes, as its labels."""

    def __init__(self, label):
        super().__init__()
        self.label = label

    def __getitem__(self, index):
        return super().__getitem__(index)[0], self.label


@pytest.mark.parametrize("label", [1.5, "healthy"])
@pytest.mark.parametrize("workers", [0, 1])
def test_labels_that_are_no_classes_are_refused(provide, network, label, workers):
    """Targets were cut off to whole numbers, and names ended in a traceback."""
    provide(LabelledOtherwise(label))
    status, _, err = network("torch/cifar10", *HERE, "--workers", workers)
    assert status == 1
    assert "error: labels of --data must be whole numbers" in err
    assert err.count("\n") == 1
    assert "healthy" not in err


def test_timm_data_of_torchvision_needs_a_folder(network):
    status, _, err = network("torch/cifar10")
    assert status == 1
    assert "needs --data-dir" in err


def test_timm_data_names_a_bad_image_by_number(provide, network):
    provide(Listed(broken=5))
    status, _, err = network("torch/cifar10", *HERE)
    assert status == 1
    assert "image train[5] of split 'train' cannot be decoded (truncated)" in err


def test_timm_data_never_takes_the_neighbour_of_a_bad_image(provide, network, tmp_path):
    for i in range(3):
        image_module.new("RGB", (20, 20), (i, i, i)).save(tmp_path / f"{i}.png")
    (tmp_path / "1.png").write_bytes(b"no image")
    dataset = Misplacing(tmp_path)
    provide(dataset)
    assert network("hfds/some", "--splits", "train", "--skip-bad")[0] == 0
    train = open_features(tmp_path / "out.h5")["train"]
    assert train.metadata["n_skipped"] == 1
    np.testing.assert_array_equal(train.y, [0, 0])
    assert all(file.closed for file, _ in dataset.reader)


def test_timm_data_that_is_not_there_is_one_line(network, tmp_path):
    status, out, err = network("torch/nothing", "--data-dir", tmp_path / "none")
    assert status == 1
    assert err.startswith("privfeat-extract: error: --data torch/nothing must be")
    assert err.count("\n") == 1
    assert not out


def sixteen_bits():
    ramp = np.tile(np.arange(20, dtype=np.uint16) * 3000, (20, 1))
    return image_module.fromarray(ramp)


def test_timm_data_from_folders_keeps_sixteen_bits(provide, tmp_path):
    """Torchvision's own reader of folders gives white."""
    for name in ("a", "b"):
        (tmp_path / "train" / name).mkdir(parents=True)
        sixteen_bits().save(tmp_path / "train" / name / "1.png")
    folders = pytest.importorskip("torchvision").datasets.ImageFolder
    provide(folders(tmp_path / "train"))  # as that of ImageNet is
    source = open_timm("torch/imagenet", tmp_path, ["train"], tmp_path)
    image, _ = source.splits["train"].load(0)
    assert len(np.unique(np.asarray(image))) == 20


@pytest.mark.parametrize(
    "data", ["torch/image_folder", "torch/folder", "torch/a/folder"]
)
def test_timm_reads_no_folder_of_images(network, tmp_path, data):
    """Splits numbered their own classes, and a missing one was all images."""
    status, _, err = network(data, "--data-dir", tmp_path)
    assert status == 1
    assert f"Pass --data {tmp_path}." in err


def test_hugging_face_reads_no_folder_of_images(provide, network):
    """It numbers the classes by the images that are there."""
    info = SimpleNamespace(builder_name="imagefolder")
    listed = Listed()
    listed.reader = SimpleNamespace(dataset=SimpleNamespace(info=info))
    provide(listed)
    status, _, err = network("hfds/scans")
    assert status == 1
    assert "must be the folder itself, got hfds/scans" in err


def test_splits_of_other_classes_are_refused(monkeypatch, network):
    """Labels of the first one got the names of the last."""
    names = iter([["a", "b"], ["b", "c"]])

    def create(*given, **options):
        dataset = Listed()
        dataset.classes = next(names)
        return dataset

    monkeypatch.setattr("timm.data.dataset_factory.create_dataset", create)
    status, _, err = network("torch/cifar10", *HERE)
    assert status == 1
    assert "must have one list of classes, but that of split 'test' is another" in err


@pytest.mark.parametrize("data", ["wds/scans", "hfids/scans", "tfds/mnist"])
def test_timm_streams_nothing(provide, network, data):
    """A damaged record of a shard took all after it along, and nothing was said."""
    provide(Listed())
    status, _, err = network(data)
    assert status == 1
    assert "timm's streams (hfids/, tfds/, wds/) are not read" in err
