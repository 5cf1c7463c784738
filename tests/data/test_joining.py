import os
import shutil

import h5py
import numpy as np
import pytest

from privfeat import PrivacyWarning
from privfeat.data import (
    FeatureFileError,
    FeatureWriter,
    join_features,
    open_features,
    write_features,
)
from tests.data.conftest import SIZES, whole


def test_join_features_has_the_rows_of_all_shards_in_order(joined, rows, shards):
    with open_features(joined) as file:
        assert set(file) == set(SIZES)
        assert file.shards == tuple(map(str, shards))
        assert file.class_names == ("a", "b", "c")
        assert file.metadata["n_rows"] == 746
        for split in file:
            np.testing.assert_array_equal(file[split].X[:], whole(rows, split, 0))
            np.testing.assert_array_equal(file[split].y, whole(rows, split, 1))
            np.testing.assert_array_equal(file[split].groups, whole(rows, split, 2))
            assert file[split].metadata["n_skipped"] == 3
        file.verify()


def test_join_features_keeps_the_attributes_that_all_shards_share(joined):
    file = open_features(joined)
    assert file.metadata["model"] == "toy"
    assert file.metadata["arguments"] == {"crop": 16}
    assert not {"host", "shard"} & set(file.metadata)
    assert file["train"].metadata["file_list_sha256"] == "f"
    assert not any(name.endswith("crc32") for name in file["train"].metadata)


def test_join_features_takes_attributes_of_splits(tmp_path, shards):
    path = tmp_path / "joined.h5"
    join_features(path, shards, split_metadata={"train": {"file_list_sha256": "g"}})
    assert open_features(path)["train"].metadata["file_list_sha256"] == "g"


@pytest.mark.parametrize(
    "key", [[699, 700, -1, 0, 700], slice(690, 710), slice(None, None, -97), 740]
)
def test_lazy_features_index_across_shards_like_numpy(joined, rows, key):
    expected = whole(rows, "train", 0)[key]
    np.testing.assert_array_equal(open_features(joined)["train"].X[key], expected)


def test_lazy_features_read_any_range_across_shards(joined, rows):
    lazy, matrix = open_features(joined)["test"].X, whole(rows, "test", 0)
    for start in range(6):
        for stop in range(start, 6):
            np.testing.assert_array_equal(lazy.read(start, stop), matrix[start:stop])


def test_joined_file_moves_together_with_its_shards(joined, rows, tmp_path):
    joined = shutil.move(joined, shutil.move(tmp_path / "shards", tmp_path / "a"))
    with pytest.raises(FeatureFileError, match="there is no such file"):
        open_features(joined)
    home = tmp_path / "home"
    home.mkdir()
    shutil.move(joined, home / "other name.h5")
    shutil.move(tmp_path / "a", home / "shards")
    train = open_features(home / "other name.h5")["train"]
    np.testing.assert_array_equal(train.X[:], whole(rows, "train", 0))


def test_joined_file_is_a_virtual_dataset_for_other_programs(
    joined, rows, shards, monkeypatch
):
    monkeypatch.chdir(os.sep)
    with h5py.File(joined) as file:
        assert file["train/features"].is_virtual
        np.testing.assert_array_equal(
            file["train/features"][()], whole(rows, "train", 0)
        )
    shards[2].unlink()
    with h5py.File(joined) as file:  # never zeros, which would be features
        assert np.isnan(file["train/features"][700:]).all()
        assert (file["train/labels"][700:] == np.iinfo(np.int64).max).all()


def test_join_features_twice_gives_the_same_file(joined, shards):
    """But for the seconds at which HDF5 says that it was made."""
    with open_features(joined) as file:
        before = file.metadata, file.shards, np.asarray(file["train"].X)
    join_features(joined, shards, overwrite=True)
    with open_features(joined) as file:
        assert (file.metadata, file.shards) == before[:2]
        np.testing.assert_array_equal(np.asarray(file["train"].X), before[2])
    with pytest.raises(FeatureFileError, match="must not exist yet"):
        join_features(joined, shards)


def test_join_features_refuses_what_does_not_belong_together(
    tmp_path, shards, write_shard, joined, feature_file
):
    out = tmp_path / "out.h5"

    def refused(files, message):
        with pytest.raises(FeatureFileError, match=message):
            join_features(out, files)

    refused([], "at least one file")
    refused([shards[0], shards[2], shards[1]], "must be shard 2 of 3, but is shard 3")
    refused(shards[:2], "must be shard 1 of 2, but is shard 1 of 3")
    refused([*shards, shards[0]], "must be shard 1 of 4")
    refused([joined], "is itself joined")
    refused([feature_file, shards[0]], "must agree with .* but class_names is")
    refused([shards[0], tmp_path / "none.h5"], "must exist")
    write_shard(2, arguments=[("crop", 8)])
    refused(shards, "crop is 8 and there 16")
    write_shard(2, count=4)
    refused(shards, "shard count is 4 and there 3")
    assert not out.exists()


def test_join_features_takes_files_of_ones_own(tmp_path):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(6, 2)).astype(np.float32)
    indicators = rng.integers(2, size=(6, 3))
    for i in range(2):
        part = slice(3 * i, 3 * i + 3)
        write_features(
            tmp_path / f"{i}.h5", {"all": (features[part], indicators[part])}
        )
    join_features(tmp_path / "out.h5", [tmp_path / "0.h5", tmp_path / "1.h5"])
    split = open_features(tmp_path / "out.h5")["all"]
    np.testing.assert_array_equal(split.X[:], features)
    np.testing.assert_array_equal(split.y, indicators)
    assert split.groups is None


def test_join_features_refuses_the_same_rows_twice(tmp_path):
    paths = [tmp_path / name for name in ("a.h5", "b.h5", "copy.h5")]
    for path, value in zip(paths, (1.0, 2.0, 1.0), strict=True):
        write_features(path, {"train": (np.full((3, 2), value), [0, 1, 0])})
    for again in (paths[0], paths[2]):
        with pytest.raises(FeatureFileError, match="every record would count twice"):
            join_features(tmp_path / "all.h5", [*paths[:2], again])
    assert not (tmp_path / "all.h5").exists()


def test_join_features_refuses_a_split_without_rows(tmp_path):
    path = tmp_path / "a.h5"
    with FeatureWriter(path, n_features=1) as writer:
        writer.append("train", np.empty((0, 1)), np.empty(0, int))
        with pytest.raises(ValueError, match="at least one row"):
            writer.finish()
        writer.finish({"shard": {"number": 1, "count": 1}})
    with pytest.raises(FeatureFileError, match="'train' must have a row in some shard"):
        join_features(tmp_path / "out.h5", [path])


def test_joined_files_of_ones_own_say_that_users_are_known_by_numbers(tmp_path):
    """Numbered in each file anew, one user would count for two, and two for one."""
    paths = [tmp_path / name for name in ("a.h5", "b.h5", "c.h5", "d.h5")]
    for place, path in enumerate(paths):
        columns = np.full((2, 3), place + 1), [0, 1], *([[0, 1]] if place < 2 else [])
        write_features(path, {"train": columns})
    with pytest.warns(PrivacyWarning, match="users are joined by their numbers"):
        join_features(tmp_path / "ab.h5", paths[:2])
    join_features(tmp_path / "cd.h5", paths[2:])  # names no user
