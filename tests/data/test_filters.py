"""What HDF5 gives is what was written, whatever compresses it.

A filter with loss rounds the records of a chunk by each other.
"""

import h5py
import numpy as np
import pytest

from privfeat import DPLeastSquares, DPSGDClassifier, PrivacyLedger, open_features
from privfeat.data import FeatureFileError, join_features, open_images, write_features
from privfeat.metrics import evaluation_of_predictions

X = np.arange(6 * 16, dtype=np.uint8).reshape(6, 4, 4, 1)
JPEG = 32019  # a registered filter that rounds the images of a part by each other


def write(path, make):
    with h5py.File(path, "w") as file:
        group = file.create_group("train")
        group["labels"] = np.arange(6) % 2
        make(group)


def plugged(group):
    """Images with a filter that is not installed, which HDF5 then leaves out."""
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_chunk(X.shape)
    how.set_filter(JPEG, h5py.h5z.FLAG_OPTIONAL)
    kind = h5py.h5t.py_create(X.dtype), h5py.h5s.create_simple(X.shape)
    h5py.h5d.create(group.id, b"images", *kind, how)
    group["images"][:] = X


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "gzip", "shuffle": True, "fletcher32": True},
        {"compression": "lzf"},
    ],
)
def test_images_are_read_through_filters_that_lose_nothing(tmp_path, options):
    path = tmp_path / "images.h5"
    write(path, lambda group: group.create_dataset("images", data=X, **options))
    np.testing.assert_array_equal(open_images(path).images[:], X)


def test_images_are_not_read_through_a_filter_that_may_round(tmp_path):
    path = tmp_path / "images.h5"
    write(path, plugged)
    with pytest.raises(FeatureFileError, match="a filter that may round them"):
        open_images(path)


ROWS = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
LABELS = np.arange(300) % 2


def repacked(path, column="features", **options):
    """Write a column of a feature file again, as ``h5repack -f`` does."""
    with h5py.File(path, "a") as file:
        group = file["train"]
        kept = group[column]
        values, chunks = kept[()], kept.chunks or kept.shape
        del group[column]
        group.create_dataset(column, data=values, chunks=chunks, **options)


def feature_file(path, start=0, stop=None):
    part = ROWS[start:stop], LABELS[start:stop]
    write_features(path, {"train": part}, class_names=["a", "b"])
    return path


@pytest.mark.parametrize("joined", [False, True])
def test_rows_that_a_filter_rounds_are_refused_uncharged(tmp_path, joined):
    path = whole = feature_file(tmp_path / "features.h5", 0, 200 if joined else None)
    if joined:
        other = feature_file(tmp_path / "more.h5", 200)
        path = tmp_path / "joined.h5"
        join_features(path, [whole, other])
    before = open_features(path)["train"]
    assert np.array_equal(before.X[:], ROWS)
    before.X.close()
    repacked(whole, scaleoffset=2)
    ledger = PrivacyLedger(
        tmp_path / "a.ledger", dataset="rows", epsilon=1.0, delta=1e-5
    )
    split = open_features(path)["train"]
    clf = DPLeastSquares(epsilon=1.0, delta=1e-5, classes=[0, 1], ledger=ledger)
    with pytest.raises(FeatureFileError, match="a filter that may round them"):
        clf.fit(split.X, split.y)
    assert not ledger.history


@pytest.mark.parametrize("options", [{"compression": "gzip"}, {"compression": "lzf"}])
def test_rows_may_be_repacked_without_loss(tmp_path, options):
    path = feature_file(tmp_path / "features.h5")
    repacked(path, **options)
    assert np.array_equal(open_features(path)["train"].X[:], ROWS)


def test_labels_that_a_filter_may_round_are_refused(tmp_path):
    path = feature_file(tmp_path / "features.h5")
    repacked(path, "labels", scaleoffset=1)
    with pytest.raises(FeatureFileError, match="a filter that may round them"):
        np.asarray(open_features(path)["train"].y)


@pytest.mark.parametrize(
    "use",
    [
        lambda X, y: DPLeastSquares(epsilon=1.0, classes=[0, 1]).fit(X, y),
        lambda X, y: DPSGDClassifier(classes=[0, 1], epsilon=1.0).fit(X, y),
        lambda X, y: DPLeastSquares(epsilon=1.0, classes=[0, 1]).fit([*ROWS], X),
        lambda X, y: evaluation_of_predictions(X, y, epsilon=1.0, classes=[0, 1]),
    ],
    ids=["X", "X of a network", "y", "predictions"],
)
def test_a_dataset_that_a_filter_rounds_is_no_array(tmp_path, use):
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        rows = file.create_dataset("rows", data=ROWS, chunks=(64, 2), scaleoffset=2)
        with pytest.raises(TypeError, match="a filter that may round them"):
            use(rows, LABELS)
        with pytest.raises(TypeError, match="a filter that may round them"):
            use(rows.astype(np.float64), LABELS)


@pytest.mark.filterwarnings("ignore:random_state:privfeat.PrivacyWarning")
def test_a_dataset_that_is_whole_is_an_array(tmp_path):
    def fit(X):
        clf = DPLeastSquares(epsilon=1.0, classes=[0, 1], random_state=0)
        return clf.fit(X, LABELS)

    with h5py.File(tmp_path / "rows.h5", "w") as file:
        found = fit(file.create_dataset("rows", data=ROWS, compression="gzip"))
    assert np.array_equal(found.coef_, fit(ROWS).coef_)
