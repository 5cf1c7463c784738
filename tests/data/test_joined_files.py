"""Files that hold the rows of several shards, and what readers notice in them."""

import shutil

import h5py
import numpy as np
import pytest

from privfeat.data import FeatureFileError, open_features
from tests.data.conftest import whole


def remove(path, write_shard):
    path.unlink()


def truncate(path, write_shard):
    path.write_bytes(path.read_bytes()[:-1])


def empty(path, write_shard):
    path.write_bytes(b"")


def replace_features(path, write_shard):
    write_shard(1, shift=1)


def replace_arguments(path, write_shard):
    write_shard(1, arguments=[("crop", 8)])


def put_another_there(path, write_shard):
    shutil.copy(path.with_name("3.h5"), path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (remove, r"needs its shard shards/1\.h5, but there is no such file"),
        (truncate, "readable shard, but is truncated"),
        (empty, "readable shard, but is truncated"),
        (replace_features, "but was replaced"),
        (replace_arguments, "but was replaced"),
        (put_another_there, "but was replaced"),
    ],
)
def test_reader_refuses_a_joined_file_without_its_shards(
    joined, shards, write_shard, damage, message
):
    before = open_features(joined)
    damage(shards[0], write_shard)
    with pytest.raises(FeatureFileError, match=message):
        open_features(joined)
    for read in (lambda: before["test"].X[4:], lambda: before["test"].labels):
        with pytest.raises(FeatureFileError, match=message):
            read()


def test_open_rows_outlive_a_shard_that_is_removed(joined, rows, shards):
    lazy = open_features(joined)["train"].X
    lazy.read(0, 1)
    shards[2].unlink()
    np.testing.assert_array_equal(lazy[:], whole(rows, "train", 0))


def test_reader_accepts_a_shard_that_was_made_again(joined, write_shard):
    write_shard(2)
    open_features(joined).verify()


def test_verify_notices_one_changed_value_of_a_shard(joined, shards):
    with h5py.File(shards[2], "r+") as file:
        file["train/features"][3, 1] += 1
    with pytest.raises(FeatureFileError, match="must have the checksum"):
        open_features(joined).verify()


@pytest.mark.parametrize("column", ["labels", "groups"])
def test_reader_notices_one_changed_label_or_user_of_a_shard(joined, shards, column):
    with h5py.File(shards[2], "r+") as file:
        file[f"train/{column}"][3] += 1
    train = open_features(joined)["train"]
    with pytest.raises(FeatureFileError, match=f"{column} of split 'train' must have"):
        getattr(train, column)


def test_reader_refuses_virtual_datasets_without_a_list_of_shards(joined):
    with h5py.File(joined, "r+") as file:
        del file.attrs["shards_json"]
    with pytest.raises(FeatureFileError, match="shards of all its rows"):
        open_features(joined)


def test_reader_refuses_a_list_that_lacks_a_shard(joined):
    with h5py.File(joined, "r+") as file:
        entries = file.attrs["shards_json"]
        file.attrs["shards_json"] = entries[: entries.index("}, {")] + "}]"
    with pytest.raises(FeatureFileError, match="must list the shards of all its"):
        open_features(joined)


def test_reader_still_takes_version_1(feature_file, arrays):
    with h5py.File(feature_file, "r+") as file:
        file.attrs["format_version"] = 1
    train = open_features(feature_file)["train"]
    np.testing.assert_array_equal(train.X[:], arrays["train"][0])
