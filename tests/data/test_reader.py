import pickle

import h5py
import numpy as np
import pytest

from privfeat.data import FeatureFileError, FeatureWriter, open_features, write_features


def test_open_features_returns_what_was_written(feature_file, arrays):
    with open_features(feature_file) as file:
        assert set(file) == {"train", "test"}
        assert len(file) == 2
        assert file.n_features == 5
        assert file.class_names == ("cat", "dog", "Zebra é")
        assert file.metadata["model"] == "toy"
        assert file.metadata["mean"] == [0.5, 0.5, 0.5]
        for name, (features, labels) in arrays.items():
            split = file[name]
            np.testing.assert_array_equal(np.asarray(split.X), features)
            np.testing.assert_array_equal(split.y, labels)
            assert split.X is split.features
            assert split.y is split.labels
            assert split.y.dtype == np.int64
            assert split.class_names == file.class_names
            assert len(split) == len(features)


def test_open_features_works_without_a_with_block(feature_file, arrays):
    train = open_features(feature_file)["train"]
    np.testing.assert_array_equal(train.X[:], arrays["train"][0])


def test_feature_file_names_its_splits_when_one_is_unknown(feature_file):
    file = open_features(feature_file)
    with pytest.raises(KeyError, match=r"one of \['test', 'train'\], got 'val'"):
        file["val"]
    assert "val" not in file


def test_feature_file_refuses_reading_after_close(feature_file):
    with open_features(feature_file) as file:
        train = file["train"]
        labels = train.y
    with pytest.raises(FeatureFileError, match="was closed"):
        train.X[0]
    assert len(labels) == 7


def test_feature_file_pickles(feature_file):
    copy = pickle.loads(pickle.dumps(open_features(feature_file)))
    assert copy["train"].X.shape == (7, 5)


def test_feature_split_pickles(feature_file, arrays):
    train = pickle.loads(pickle.dumps(open_features(feature_file)["train"]))
    np.testing.assert_array_equal(train.y, arrays["train"][1])
    np.testing.assert_array_equal(train.X[2:4], arrays["train"][0][2:4])


def test_feature_split_labels_are_read_only(feature_file):
    labels = open_features(feature_file)["train"].y
    with pytest.raises(ValueError, match="read-only"):
        labels[0] = 1


def test_feature_split_keeps_groups_and_indicators(tmp_path):
    path = tmp_path / "more.h5"
    indicators = np.array([[1, 0, 1], [0, 0, 1]])
    with FeatureWriter(path, n_features=2, dtype="float32") as writer:
        writer.append(
            "train", np.eye(2), indicators, groups=[5, 6], skipped=["ä.png", "b.png"]
        )
        writer.finish()
    train = open_features(path)["train"]
    np.testing.assert_array_equal(train.y, indicators)
    assert train.y.dtype == np.uint8
    np.testing.assert_array_equal(train.groups, [5, 6])
    assert train.metadata["n_skipped"] == 2


def test_feature_split_has_no_groups_by_default(feature_file):
    train = open_features(feature_file)["train"]
    assert train.groups is None
    assert not train.X.has_groups


def test_lazy_features_know_that_their_file_names_users(tmp_path):
    path = tmp_path / "users.h5"
    write_features(path, {"train": (np.eye(2), [0, 1], [5, 6])})
    X = open_features(path)["train"].X
    assert X.has_groups
    assert pickle.loads(pickle.dumps(X)).has_groups


def test_origin_holds_no_number_and_no_digest_of_records(tmp_path):
    """Two files of other records have one origin, whatever else is known of them."""
    origins = []
    for n in (2, 3):
        path = tmp_path / f"{n}.h5"
        known = {"model": "toy", "arguments": {"file_lists": {"train": str(n)}}}
        write_features(
            path, {"train": (np.eye(n, 2) + 1, [0] * n)}, metadata={**known, "n": n}
        )
        origins.append(open_features(path).origin)
    assert origins[0] == origins[1]
    assert origins[0] == {"feature_dtype": "float32", "model": "toy", "n_features": 2}


def test_feature_file_verify_notices_one_changed_value(feature_file):
    open_features(feature_file).verify(chunk_rows=2)
    with h5py.File(feature_file, "r+") as file:
        file["train/features"][3, 1] += 1
    with pytest.raises(FeatureFileError, match="split 'train' must have the checksum"):
        open_features(feature_file).verify()


def test_feature_file_shows_its_splits(feature_file):
    shown = repr(open_features(feature_file))
    assert shown == "FeatureFile('small.h5', {test: (4, 5), train: (7, 5)})"
