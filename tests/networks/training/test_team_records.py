"""Processes that train together must have the same records, in one order."""

import numpy as np
import pytest

from privfeat import DPSGDClassifier
from privfeat.data.images import FolderImages
from privfeat.exceptions import PrivacyError
from tests.networks.tiny import TINY

Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")

FULL = TINY | {"expected_batch_size": None, "n_iter": 2}  # whose cost is quick to find


def other_data(records, case):
    X, y = records
    if case == "targets":
        return X, np.roll(y, 1)
    if case == "rows":
        return X[::-1], y
    return X[:-1], y[:-1]


@pytest.mark.parametrize("case", ["targets", "rows", "number"])
def test_processes_with_other_records_are_refused(records, together, released, case):
    both = records, other_data(records, case)
    for found in together(lambda i: DPSGDClassifier(**FULL).fit(*both[i])):
        assert isinstance(found, PrivacyError)
        assert "all processes must have the same" in str(found)
    assert not released


@pytest.mark.parametrize("limit", [2**28, 0])
def test_processes_whose_records_are_in_another_order_are_refused(
    together, released, plant, limit
):
    """Also far behind the first ones, and among records of one class."""
    plant("bytes that processes compare", limit)
    X = np.random.default_rng(0).normal(size=(120, 5))
    y = np.zeros(120, int)
    other = X.copy()
    other[60:80] = np.roll(X[60:80], 1, axis=0)
    both = X, other
    for found in together(lambda i: DPSGDClassifier(**FULL).fit(both[i], y)):
        assert isinstance(found, PrivacyError)
        assert "all processes must have the same rows" in str(found)
    assert not released


def test_processes_with_images_of_other_names_are_refused(together, tmp_path, released):
    """Which are in another order from there on, though all that is compared agrees."""
    names = [[f"{i}.png" for i in range(9)], [f"{i}.png" for i in (*range(8), 9)]]
    for name in {*names[0], *names[1]}:
        Image.new("L", (2, 2)).save(tmp_path / name)
    y = np.zeros(9, int)

    def fit(index):
        images = FolderImages(tmp_path, names[index], 2, "L")
        return DPSGDClassifier(**FULL).fit(images, y)

    for found in together(fit):
        assert isinstance(found, PrivacyError)
        assert "all processes must have the same image files" in str(found)
    assert not released
