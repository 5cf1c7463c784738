"""Data that change while an extraction is stopped: no record stands in a file twice."""

import os
import shutil
import time

import pytest

from privfeat.data import open_features

image_module = pytest.importorskip("PIL.Image")
HERE = ("--data-dir", ".")


class Listed:
    """Stands for a data set of timm; the image at ``broken`` ends an extraction."""

    def __init__(self, count, broken=None, first=0):
        self.count, self.broken, self.first = count, broken, first

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index == self.broken:
            raise OSError("truncated")
        shade = (self.first + index) * 10
        return image_module.new("RGB", (20, 20), (shade, 9, 9)), index % 3


class Cached(Listed):
    """Stands for one of Hugging Face's, whose library says where its files are."""

    def __init__(self, folder, *args, **options):
        super().__init__(*args, **options)
        self.reader = self.dataset = self
        self.cache_files = [{"filename": str(folder / "data.arrow")}]

    def __getitem__(self, index):
        return super().__getitem__(index)


@pytest.fixture
def provide(monkeypatch, with_timm):
    """Return a function that sets what ``create_dataset`` returns."""

    def set_dataset(dataset):
        place = "timm.data.dataset_factory.create_dataset"
        monkeypatch.setattr(place, lambda *a, **k: dataset)

    return set_dataset


def stopped(images, scatter):
    """Stop an extraction at its seventh image, and repair that."""
    bad = images / "train" / "dog" / "1.png"
    whole = bad.read_bytes()
    bad.write_bytes(whole[: len(whole) // 2])
    assert scatter(images)[0] == 1
    bad.write_bytes(whole)


def test_an_image_that_has_a_row_and_changed_is_refused(images, scatter, tmp_path):
    stopped(images, scatter)
    shutil.copyfile(images / "train/dog/2.png", images / "train/cat/3.png")
    soon = time.time() + 5.0  # clocks of file systems are coarse
    os.utime(images / "train/cat/3.png", (soon, soon))
    status, _, err = scatter(images)
    assert status == 1
    assert "some of their files are newer" in err
    assert not (tmp_path / "out.h5").exists()
    assert scatter(images, "--overwrite")[0] == 0


def test_an_image_without_a_row_may_be_repaired(images, scatter):
    stopped(images, scatter)
    status, _, err = scatter(images)
    assert (status, "continuing after 6 rows" in err) == (0, True)


@pytest.mark.parametrize("kind", ["zip", "tar", "gztar"])
def test_an_archive_that_was_packed_anew_is_refused(images, scatter, tmp_path, kind):
    bad = images / "train" / "dog" / "1.png"
    bad.write_bytes(bad.read_bytes()[:40])
    archive = shutil.make_archive(str(tmp_path / "packed"), kind, images)
    assert scatter(archive)[0] == 1
    shutil.copyfile(images / "train/dog/2.png", bad)
    assert shutil.make_archive(str(tmp_path / "packed"), kind, images) == archive
    status, _, err = scatter(archive)
    assert (status, "continuing" in err) == (1, False)
    assert "but the state of the data was another" in err
    assert scatter(archive, "--overwrite")[0] == 0


def test_timm_data_of_another_number_do_not_go_on(provide, network, tmp_path):
    provide(Listed(7, broken=6))
    assert network("torch/some", *HERE, "--batch-size", 1)[0] == 1
    provide(Listed(8, first=-1))
    status, _, err = network("torch/some", *HERE, "--batch-size", 1)
    assert (status, "continuing" in err) == (1, False)
    assert not (tmp_path / "out.h5").exists()


def test_timm_data_that_go_on_are_warned_of(provide, network, tmp_path):
    """Nothing tells whether they are those of before, but their number."""
    provide(Listed(7, broken=6))
    assert network("torch/some", *HERE, "--batch-size", 1)[0] == 1
    provide(Listed(7))
    status, _, err = network("torch/some", *HERE, "--batch-size", 1)
    assert status == 0
    assert "continuing after 6 rows" in err
    assert "tells no more than the number of its records" in err
    assert len(open_features(tmp_path / "out.h5")["train"].X) == 7


def test_data_of_hugging_face_go_on_if_their_files_are_the_same(
    provide, network, tmp_path
):
    (tmp_path / "data.arrow").write_bytes(b"one")
    provide(Cached(tmp_path, 7, broken=6))
    run = ("hfds/some", "--splits", "train", "--batch-size", 1)
    assert network(*run)[0] == 1
    (tmp_path / "data.arrow").write_bytes(b"another")
    provide(Cached(tmp_path, 7))
    status, _, err = network(*run)
    assert (status, "continuing" in err) == (1, False)
    (tmp_path / "data.arrow").write_bytes(b"one")
    assert network(*run, "--overwrite")[0] == 0


def test_shards_of_timm_data_are_warned_of(provide, network, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    provide(Listed(7))
    status, _, err = network("torch/some", *HERE)
    assert status == 0
    assert "Change nothing until all shards are made" in err


def test_shards_of_two_archives_are_not_joined(images, scatter_as, tmp_path):
    archive = shutil.make_archive(str(tmp_path / "packed"), "tar", images)
    assert scatter_as(0, 2, archive)[0] == 0
    bad = images / "train" / "dog" / "1.png"
    bad.write_bytes(bad.read_bytes() + bytes(20_000))  # as PNG goes, the same image
    shutil.make_archive(str(tmp_path / "packed"), "tar", images)
    status, out, _ = scatter_as(1, 2, archive)
    assert (status, "1 of 2 shards to come" in out) == (0, True)
    assert not (tmp_path / "out.h5").exists()
