import h5py
import numpy as np
import pytest

from privfeat.data import FORMAT_VERSION, FeatureFileError, open_features
from privfeat.data.schema import chunk_rows, read_attributes, write_attributes


def test_write_attributes_round_trips_json_values(tmp_path):
    values = {
        "model": "vit",
        "resize": 384,
        "scale": 0.5,
        "flag": True,
        "mean": [0.5, 0.5, 0.5],
        "versions": {"numpy": "2"},
        "limit": None,
    }
    with h5py.File(tmp_path / "a.h5", "w") as file:
        write_attributes(file, values)
        assert read_attributes(file) == values


@pytest.mark.parametrize(
    ("n_rows", "row_bytes", "expected"),
    [(10, 2, 10), (10**6, 2560, 102), (5, 10**9, 1), (0, 8, 1)],
)
def test_chunk_rows_stays_near_the_chunk_size(n_rows, row_bytes, expected):
    assert chunk_rows(n_rows, row_bytes) == expected


def change_format(file):
    file.attrs["format"] = "other"


def change_version(file):
    file.attrs["format_version"] = FORMAT_VERSION + 1


def remove_mark(file):
    del file.attrs["complete"]


def clear_mark(file):
    file.attrs["complete"] = False


def shorten_features(file):
    file["train/features"].resize(3, axis=0)


def shorten_labels(file):
    labels = file["train/labels"][:-1]
    del file["train/labels"]
    file["train/labels"] = labels


def remove_labels(file):
    del file["train/labels"]


def remove_split(file):
    del file["test"]


def widen_root(file):
    file.attrs["n_features"] = 99


def change_dtype(file):
    file.attrs["feature_dtype"] = "float64"


def make_labels_real(file):
    labels = file["train/labels"][:].astype(np.float64)
    del file["train/labels"]
    file["train/labels"] = labels


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (change_format, "must be a feature file"),
        (change_version, r"must have a format version in \(1, 2\), got 3"),
        (remove_mark, "completion mark is missing"),
        (clear_mark, "completion mark is missing"),
        (shorten_features, "must have n_rows rows in every array"),
        (shorten_labels, "must have n_rows rows in every array"),
        (remove_labels, "must hold 'features' and 'labels'"),
        (remove_split, "over all splits"),
        (widen_root, r"features must have shape \(n, 99\)"),
        (change_dtype, "must be of type float16 or float32"),
        (make_labels_real, r"labels must be \(n,\) int64"),
    ],
)
def test_open_features_refuses_a_changed_file(feature_file, damage, message):
    with h5py.File(feature_file, "r+") as file:
        damage(file)
    with pytest.raises(FeatureFileError, match=message):
        open_features(feature_file)


def test_open_features_refuses_a_truncated_file(feature_file):
    whole = feature_file.read_bytes()
    for size in (0, 100, len(whole) // 2, len(whole) - 1):
        feature_file.write_bytes(whole[:size])
        with pytest.raises(FeatureFileError, match="truncated, damaged"):
            open_features(feature_file)


def test_open_features_refuses_what_is_not_hdf5(tmp_path):
    path = tmp_path / "notes.h5"
    path.write_text("hello")
    with pytest.raises(FeatureFileError, match="of another kind"):
        open_features(path)


def test_open_features_says_how_to_make_a_file_of_a_folder(tmp_path):
    with pytest.raises(
        FeatureFileError, match=r"is a folder\. Make one of images with"
    ):
        open_features(tmp_path)


def test_open_features_refuses_foreign_hdf5(tmp_path):
    path = tmp_path / "foreign.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.zeros(3)
    with pytest.raises(FeatureFileError, match="'format' attribute is None"):
        open_features(path)


def test_open_features_names_a_missing_file(tmp_path):
    with pytest.raises(FeatureFileError, match=r"nothing\.h5 must exist"):
        open_features(tmp_path / "nothing.h5")


def test_open_features_mentions_an_unfinished_extraction(tmp_path):
    (tmp_path / "a.h5.partial").mkdir()
    with pytest.raises(FeatureFileError, match="unfinished: run the same command"):
        open_features(tmp_path / "a.h5")
