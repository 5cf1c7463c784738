import numpy as np
import pytest

from privfeat.data import open_features, write_features
from privfeat.data.splits import find_gaps


@pytest.fixture
def gaps(tmp_path):
    """Return a function from splits to the sentences on their gaps."""

    def find(class_names=("ant", "bee", "cat"), **splits):
        path = tmp_path / "some.h5"
        write_features(path, splits, class_names=class_names, overwrite=True)
        with open_features(path) as file:
            return find_gaps(dict(file))

    return find


def test_find_gaps_finds_none_where_all_is_there(gaps):
    whole = (np.ones((3, 2)), [0, 1, 2])
    assert gaps(train=whole, test=whole) == []


def test_find_gaps_names_classes_that_a_split_lacks(gaps):
    train, test = (np.ones((2, 2)), [0, 2]), (np.ones((2, 2)), [0, 1])
    assert sorted(gaps(train=train, test=test)) == [
        "test has no row of class 'cat', train has one.",
        "train has no row of class 'bee', test has one.",
    ]
    assert sorted(gaps(class_names=None, train=train, test=test)) == [
        "test has no row of class 2, train has one.",
        "train has no row of class 1, test has one.",
    ]
    several = (np.ones((2, 2)), np.array([[1, 0, 0], [1, 1, 0]]))
    assert gaps(train=several) == ["train has no row of class 'cat'."]
