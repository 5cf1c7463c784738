"""Fits on images that stay on disk: those in memory, of which few are read."""

import math

import h5py
import numpy as np
import pytest

from privfeat import DPSGDClassifier, PrivacyLedger
from privfeat.core.ledger.charging import NOTHING_DRAWN
from privfeat.data import (
    FeatureFileError,
    LazyImages,
    open_features,
    open_images,
    write_features,
)
from privfeat.networks import read_folder
from privfeat.networks.images.records import as_records
from tests.combinations import few
from tests.networks.tiny import TINY

Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")

SMALL = TINY | {"classes": [0, 1], "n_iter": 3, "expected_batch_size": None}


@pytest.fixture
def folder(tmp_path):
    """Thirty images of two classes."""
    draw = np.random.default_rng(0)
    for name in "ab":
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(15):
            pixels = draw.integers(0, 256, (5, 6, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "images" / name / f"{i}.png")
    return tmp_path / "images"


def check_same(found, expected):
    assert found.privacy_ == expected.privacy_
    for name, leaf in expected.parameters_.items():
        np.testing.assert_array_equal(found.parameters_[name], leaf, err_msg=name)


def test_a_folder_is_read_late_as_it_is_read_at_once(folder):
    early, late = (read_folder(folder, size=4, lazy=lazy) for lazy in (False, True))
    assert isinstance(late.images, LazyImages)
    assert as_records(late.images) is late.images
    assert late[1].tolist() == early[1].tolist()
    assert late[2:] == early[2:]
    np.testing.assert_array_equal(late.images, early.images)


@pytest.mark.slow
@pytest.mark.parametrize("params", [{}, {"clipping": "adaptive"}])
def test_a_fit_on_a_folder_is_that_on_its_images(folder, params):
    early, late = (read_folder(folder, size=4, lazy=lazy) for lazy in (False, True))
    expected = DPSGDClassifier(**SMALL | params).fit(early.images, early.labels)
    found = DPSGDClassifier(**SMALL | params).fit(late.images, late.labels)
    check_same(found, expected)
    np.testing.assert_array_equal(
        found.predict_proba(late.images), expected.predict_proba(early.images)
    )


@pytest.mark.slow
def test_users_of_images_in_a_file_are_those_in_memory(folder, tmp_path):
    images, labels, *_ = read_folder(folder, size=4)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["train/images"], file["train/labels"] = images, labels
    users, params = np.arange(30) // 4, SMALL | {"max_group_size": 3}
    expected = DPSGDClassifier(**params).fit(images, labels, users)
    X, y, *_ = open_images(tmp_path / "a.h5")
    check_same(DPSGDClassifier(**params).fit(X, y, users), expected)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", few(1, ["float16", "float32"]))
def test_rows_of_a_feature_file_are_records(records, tmp_path, dtype):
    X, y = records
    rows = X.astype(dtype)
    write_features(tmp_path / "a.h5", {"train": (rows, y)})
    late = open_features(tmp_path / "a.h5")["train"]
    params = SMALL | {"classes": range(3)}
    expected = DPSGDClassifier(**params).fit(rows, y)
    found = DPSGDClassifier(**params).fit(late.X, late.y)
    check_same(found, expected)
    np.testing.assert_array_equal(found.predict(late.X), expected.predict(rows))


def test_a_feature_file_is_refused_before_the_charge(records, tmp_path):
    X, y = records
    write_features(tmp_path / "a.h5", {"train": (X.astype(np.float32), y)})
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["train/features"][-1, 0] = np.nan
    late = open_features(tmp_path / "a.h5")["train"]
    clf = DPSGDClassifier(**SMALL | {"classes": range(3)})
    with pytest.raises(ValueError, match="X must not contain NaN or infinity"):
        clf.fit(late.X, late.y)
    assert not hasattr(clf, "privacy_")


def test_an_image_that_cannot_be_read_costs_nothing_before_the_first_draw(folder):
    late = read_folder(folder, size=4, lazy=True)
    for file in folder.glob("*/*.png"):
        file.unlink()
    clf = DPSGDClassifier(**SMALL)
    with pytest.raises(Exception, match="png") as raised:
        clf.fit(late.images, late.labels)
    assert raised.value.__notes__ == [NOTHING_DRAWN]
    assert not hasattr(clf, "privacy_")


@pytest.mark.slow
def test_a_step_reads_what_it_draws_in_small_batches(folder, plant):
    """Each drawn image once a step, at most a microbatch at a time, and no other."""
    late = read_folder(folder, size=4, lazy=True)
    reads, masks = [], []
    sample, read = plant.genuine("Poisson sample"), type(late.images)._read

    def watched(key, n, probability):
        mask = sample(key, n, probability)
        masks.append(np.flatnonzero(mask))
        return mask

    class Watched(type(late.images)):
        def _read(self, numbers):
            reads.append(numbers)
            return read(self, numbers)

    late.images.__class__ = Watched
    plant("Poisson sample", watched)
    params = SMALL | {"expected_batch_size": 10}
    DPSGDClassifier(**params).fit(late.images, late.labels)
    assert np.concatenate(reads).tolist() == np.concatenate(masks).tolist()
    assert max(map(len, reads)) == params["microbatch_size"] == 4


def test_no_images_are_refused():
    class Empty(LazyImages):
        def _read(self, numbers):
            raise AssertionError

    with pytest.raises(ValueError, match="at least 1 record"):
        as_records(Empty((0, 4, 4, 3)))


def test_damaged_file_of_images_is_refused_before_the_charge(tmp_path):
    path, ledger = tmp_path / "a.h5", tmp_path / "ledger"
    with h5py.File(path, "w") as file:
        options = {"chunks": (5, 4, 4, 1), "compression": "gzip"}
        shape = (20, 4, 4, 1)
        chunk = file.create_dataset("train/images", shape, np.uint8, **options)
        chunk[...] = np.arange(math.prod(shape)).reshape(shape) % 256
        place = chunk.id.get_chunk_info(3)
        file["train/labels"] = np.arange(20) % 2
    content = bytearray(path.read_bytes())
    content[place.byte_offset : place.byte_offset + place.size] = bytes(place.size)
    path.write_bytes(content)
    X, y, *_ = open_images(path)
    budget = PrivacyLedger(ledger, dataset="a", epsilon=1.0, delta=1e-5)
    clf = DPSGDClassifier(model="mlp", classes=[0, 1], epsilon=1.0, ledger=budget)
    with pytest.raises(FeatureFileError, match="is gone or damaged"):
        clf.fit(X, y)
    assert not budget.history
