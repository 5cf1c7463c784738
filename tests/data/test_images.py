"""Images that stay on disk: what is read, and that only what is asked for is."""

import os
import pickle

import h5py
import numpy as np
import pytest

from privfeat.data import FeatureFileError, open_images
from privfeat.data.images import FolderImages, StoredImages, has_test
from privfeat.data.pixels import BadImageError

Image = pytest.importorskip("PIL.Image")
N = 23


@pytest.fixture(scope="module")
def pixels():
    return np.random.default_rng(0).integers(0, 256, (N, 4, 4, 3), dtype=np.uint8)


@pytest.fixture
def stored(tmp_path, pixels):
    path = tmp_path / "images.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("train/images", data=pixels, chunks=(3, 4, 4, 3))
        file["train/labels"] = np.arange(N) % 2
        file["grey"] = pixels[..., 0]
        file["class_names"] = ["cat", "dog"]
    return path


@pytest.fixture
def in_folder(tmp_path, pixels):
    files = [f"{place}.png" for place in range(N)]
    for file, image in zip(files, pixels, strict=True):
        Image.fromarray(image).save(tmp_path / file)
    return FolderImages(tmp_path, files, 4, "RGB")


@pytest.fixture(params=["stored", "in_folder", "grey"])
def lazy(request, pixels):
    """Images on disk, and the same in memory."""
    if request.param == "in_folder":
        return request.getfixturevalue("in_folder"), pixels
    path = request.getfixturevalue("stored")
    if request.param == "grey":
        found = open_images(path, images="grey").images
        return found, pixels[..., :1]
    return open_images(path).images, pixels


@pytest.mark.parametrize(
    "key",
    [
        slice(None), slice(3, 9), slice(None, None, -2), slice(9, 3), [5],
        [7, 1, 7, -1], np.array([], int), np.array([[1, 2], [2, 22]]),
        np.arange(N)[::-1], 4, -1,
    ],
    ids=str,
)  # fmt: skip
def test_images_on_disk_are_indexed_like_an_array(lazy, key):
    images, expected = lazy
    assert images.shape == expected.shape
    assert (images.ndim, len(images), images.dtype) == (4, N, np.uint8)
    np.testing.assert_array_equal(images[key], expected[key])


@pytest.mark.parametrize("key", [N, [N], [-N - 1], [1.0], [True, False], "a", None])
def test_other_indices_are_refused(lazy, key):
    with pytest.raises(IndexError, match="images must be indexed by"):
        lazy[0][key]


def test_images_on_disk_become_an_array(lazy):
    images, expected = lazy
    np.testing.assert_array_equal(np.asarray(images), expected)
    assert np.asarray(images, np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="copy must be None or True"):
        np.asarray(images, copy=False)
    assert "shape=(23, 4, 4" in repr(images)


def test_images_on_disk_are_pickled_by_path(lazy):
    images, expected = lazy
    again = pickle.loads(pickle.dumps(images))
    np.testing.assert_array_equal(again[[3]], expected[[3]])


def test_a_file_names_labels_and_classes(stored):
    found = open_images(stored)
    assert found.labels.tolist() == [place % 2 for place in range(N)]
    assert found.class_names == ["cat", "dog"]


def test_labels_may_be_text_and_classes_without_names(tmp_path, pixels):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["train/images"] = pixels[:2]
        file["train/labels"] = ["a", "b"]
    found = open_images(tmp_path / "a.h5")
    assert found.labels.tolist() == ["a", "b"]
    assert found.class_names is None


@pytest.mark.parametrize("block", [None, (3, 4, 4, 3)])
def test_only_images_that_are_asked_for_are_read(tmp_path, pixels, block, monkeypatch):
    """And those of their chunk; without chunks, those between two that are close."""
    large = np.zeros((N, 512, 512, 1), np.uint8) if block is None else pixels
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=large, chunks=block)
    images = StoredImages(str(tmp_path / "a.h5"), "x", large.shape)
    images[[0]]
    sizes, read = [], h5py.Dataset.__getitem__

    def counted(self, key, **options):
        rows = read(self, key, **options)
        sizes.append(len(rows))
        return rows

    monkeypatch.setattr(h5py.Dataset, "__getitem__", counted)
    images[[0, 11, 22]]
    assert sizes == [1, 1, 1]


def test_an_image_that_is_damaged_later_is_named(in_folder, tmp_path):
    (tmp_path / "3.png").write_text("no image")
    in_folder[[0, 1, 2]]
    with pytest.raises(
        BadImageError,
        match=r"3\.png must be an image that can be",
    ):
        in_folder[[2, 3]]


def test_images_can_be_gone_through(lazy):
    """An index that refused single images would end a loop before the first."""
    images, expected = lazy
    assert [image.tolist() for image in images] == expected.tolist()


def test_files_of_a_folder_stay_those_of_its_labels(tmp_path, pixels):
    files = ["0.png", "1.png"]
    for file, image in zip(files, pixels, strict=False):
        Image.fromarray(image).save(tmp_path / file)
    images = FolderImages(tmp_path, files, 4, "RGB")
    files.reverse()
    np.testing.assert_array_equal(images, pixels[:2])


def test_a_file_may_say_whose_each_image_is(stored):
    assert open_images(stored).groups is None
    with h5py.File(stored, "a") as file:
        file["train/groups"] = np.arange(N) // 2
    found = open_images(stored)
    assert found.groups.tolist() == (np.arange(N) // 2).tolist()
    assert pickle.loads(pickle.dumps(found.images)).has_groups
    with h5py.File(stored, "a") as file:
        del file["train/groups"]
        file["train/groups"] = np.arange(N - 1)
    with pytest.raises(FeatureFileError, match="must hold as many labels"):
        open_images(stored)


def test_damage_is_found_where_all_images_are_read_once(tmp_path, pixels):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        options = {"chunks": (5, 4, 4, 3), "compression": "gzip"}
        chunk = file.create_dataset("train/images", data=pixels, **options)
        place = chunk.id.get_chunk_info(3)
        file["train/labels"] = np.arange(N) % 2
    open_images(path).images.read_once()
    content = bytearray(path.read_bytes())
    content[place.byte_offset : place.byte_offset + place.size] = bytes(place.size)
    path.write_bytes(content)
    images = open_images(path).images
    with pytest.raises(FeatureFileError, match="is gone or damaged"):
        images.read_once()


def test_labels_that_are_no_text_are_not_shown(stored):
    with h5py.File(stored, "a") as file:
        labels = file.create_dataset("bytes", (N,), h5py.string_dtype())
        labels[:] = [b"secret\xff"] * N
    with pytest.raises(FeatureFileError, match="is gone or damaged") as raised:
        open_images(stored, labels="bytes")
    assert "xff" not in str(raised.value)


def test_a_file_that_is_changed_later_is_refused(stored, pixels):
    images = open_images(stored).images
    with h5py.File(stored, "a") as file:
        del file["train/images"]
        file["train/images"] = pixels[:5]
    with pytest.raises(FeatureFileError, match="was changed"):
        images[[0]]


def test_a_file_in_the_place_of_another_is_refused(stored, pixels):
    """Its images would stand beside labels and users of other images."""
    opened = open_images(stored).images
    opened[[0]]
    elsewhere = pickle.dumps(opened)
    content = stored.read_bytes()
    stored.unlink()
    stored.write_bytes(content)
    os.utime(stored, ns=(0, 0))
    assert np.array_equal(opened[[0]], pixels[:1])  # that file is still open
    with pytest.raises(FeatureFileError, match="was changed"):
        pickle.loads(elsewhere)[[0]]


def test_a_file_that_is_gone_is_refused(stored):
    images = open_images(stored).images
    stored.unlink()
    with pytest.raises(FeatureFileError, match="is gone or damaged"):
        images[[0]]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"images": "none"}, "must hold a dataset 'none'"),
        ({"images": "train"}, "must hold a dataset 'train'"),
        ({"images": "floats"}, "must hold bytes of shape"),
        ({"images": "flat"}, "must hold bytes of shape"),
        ({"images": "four"}, "must hold bytes of shape"),
        ({"labels": "flat"}, "must hold bytes of shape"),
        ({"labels": "short"}, "must hold as many labels"),
        ({"images": "empty", "labels": "no"}, "at least one"),
    ],
)
def test_other_files_are_refused(stored, names, message):
    with h5py.File(stored, "a") as file:
        file["floats"], file["flat"] = np.zeros((N, 4, 4)), np.zeros((N, 4), np.uint8)
        file["four"] = np.zeros((N, 4, 4, 4), np.uint8)
        file["short"], file["no"] = np.zeros(N - 1, int), np.zeros(0, int)
        file["empty"] = np.zeros((0, 4, 4, 3), np.uint8)
    with pytest.raises(FeatureFileError, match=message):
        open_images(stored, **names)


def test_what_is_no_file_is_refused(tmp_path):
    (tmp_path / "a.h5").write_text("text")
    for name in ("a.h5", "none.h5"):
        with pytest.raises(FeatureFileError, match="must be an HDF5 file with images"):
            open_images(tmp_path / name)


def test_a_test_of_the_training_images_is_refused(tmp_path, pixels):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["train"] = pixels
        assert not has_test(path, "train", "test")
        file["test"] = pixels
    assert has_test(path, "train", "test")
    with h5py.File(path, "r+") as file:
        del file["test"]
        file["test"] = file["train"]  # another name of the same dataset
    with pytest.raises(FeatureFileError, match="must not hold one dataset as 'train'"):
        has_test(path, "train", "test")


@pytest.mark.parametrize("name", ["images", "labels", "groups"])
@pytest.mark.parametrize(
    "fault", ["virtual", "unwritten", "in part", "external", "rounded"]
)
def test_images_that_are_not_in_the_file_are_refused(tmp_path, pixels, name, fault):
    """HDF5 reads zeros there: black images, of one class and of one user.

    Or the least value of a part decides how others are rounded.
    """
    columns = {"images": pixels, "labels": np.arange(N) % 2, "groups": np.arange(N)}
    path, values = tmp_path / "some.h5", columns.pop(name)
    kind = {"shape": values.shape, "dtype": values.dtype}
    with h5py.File(path, "w") as file:
        group = file.create_group("train")
        for other, content in columns.items():
            group[other] = content
        if fault == "virtual":
            layout = h5py.VirtualLayout(**kind)
            layout[:] = h5py.VirtualSource("gone.h5", name, values.shape)
            group.create_virtual_dataset(name, layout)
        elif fault == "external":
            raw = [(str(tmp_path / "raw"), 0, h5py.h5f.UNLIMITED)]
            group.create_dataset(name, external=raw, **kind)
        elif fault == "in part":
            group.create_dataset(name, chunks=(5, *values.shape[1:]), **kind)
            group[name][:5] = values[:5]
        elif fault == "rounded":
            group.create_dataset(name, data=values, scaleoffset=4)
        else:
            group.create_dataset(name, **kind)
    with pytest.raises(
        FeatureFileError, match="must hold its images, labels and users"
    ):
        open_images(path)
