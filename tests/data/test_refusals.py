"""What a feature file, or a table of users, is refused for after it was opened."""

import h5py
import numpy as np
import pytest

from privfeat._checks import check_real
from privfeat.data import FeatureFileError, open_features
from privfeat.data.users import read_users


def change(path, function):
    with h5py.File(path, "r+") as file:
        function(file["train"])


def remove_labels(split):
    del split["labels"]


def shorten_labels(split):
    del split["labels"]
    split.create_dataset("labels", data=np.zeros(3, np.int64))


def change_a_label(split):
    split["labels"][0] += 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (remove_labels, "as it was opened, but was changed"),
        (shorten_labels, "as it was opened, but was changed"),
        (change_a_label, "must have the checksum they were written with"),
    ],
)
def test_labels_that_were_changed_are_refused(feature_file, changed, message):
    split = open_features(feature_file)["train"]
    change(feature_file, changed)
    with pytest.raises(FeatureFileError, match=message):
        split.labels  # noqa: B018


def test_a_split_shows_its_shape_and_no_data(feature_file):
    split = open_features(feature_file)["train"]
    assert repr(split) == "FeatureSplit('train', shape=(7, 5))"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"file,user\n\xff,a\n", "must be a table in UTF-8"),
        (b"file,user\n1.png,Smith, Ann\n", "as many values in each other"),
        (b"file,user\n1.png\n", "as many values in each other"),
        (b'file,user\n1.png,"Bob\n2.png,Zoe"\n3.png,Bob\n', "none of them with a line"),
        (b'file,user\n1.png,"Bob"x\n', "separated by commas"),
        (b"file,user\n1.png,a\n1.png,b\n", "names 1.png twice"),
        (b"file;user\n1.png;a\n", "its first line is by semicolons"),
        (b"1.png,a\n", "Name them in the first line"),
    ],
)
def test_tables_of_users_that_are_not_clear_are_refused(tmp_path, content, message):
    path = tmp_path / "users.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_users(path, ["1.png"])


def test_a_number_beyond_all_floats_is_out_of_every_range():
    with pytest.raises(ValueError, match="epsilon must be >= 0"):
        check_real("epsilon", 10**400, low=0.0)
