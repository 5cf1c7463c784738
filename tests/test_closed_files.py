"""Files that their owner has closed to others, when they are written again."""

import os

import numpy as np
import pytest

from privfeat import DPLeastSquares, DPRandomizedSearch, PrivacyLedger, save
from privfeat._files import LEDGER, write_atomically
from privfeat.data import write_features
from privfeat.estimation.fitting import keep_params

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")


def mode_of(path):
    return path.stat().st_mode & 0o777


def test_a_file_that_is_written_again_is_open_to_nobody_new(tmp_path):
    """It came back with the mode of a new file: predictions that all could read."""
    path = tmp_path / "predictions.csv"
    write_atomically(path, b"old")
    path.chmod(0o600)
    write_atomically(path, b"new")
    assert (path.read_bytes(), mode_of(path)) == (b"new", 0o600)


def test_a_link_is_followed_and_stays(tmp_path):
    """It was replaced by a file beside the folder that was closed."""
    closed, link = tmp_path / "closed", tmp_path / "link"
    closed.mkdir(mode=0o700)
    link.symlink_to(closed / "file")
    for content in (b"first", b"second"):
        write_atomically(link, content)
        assert link.is_symlink()
        assert (closed / "file").read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["closed", "link"]


def test_a_feature_file_keeps_its_mode_and_its_link(tmp_path):
    path = tmp_path / "features.h5"
    splits = {"train": (np.eye(3, dtype=np.float32), [0, 1, 0])}
    write_features(path, splits)
    path.chmod(0o600)
    write_features(path, splits, overwrite=True)
    assert mode_of(path) == 0o600


@pytest.mark.filterwarnings("ignore:random_state makes the noise")
def test_a_closed_model_stays_closed(tmp_path):
    """Its arrays have a new name each time."""
    X, y = np.eye(3), [0, 1, 0]
    for epsilon in (1.0, 2.0):
        clf = DPLeastSquares(epsilon=epsilon, classes=[0, 1], random_state=0)
        save(clf.fit(X, y), tmp_path / "model", overwrite=True)
        for path in (tmp_path / "model").iterdir():
            assert epsilon == 1.0 or mode_of(path) == 0o600
            path.chmod(0o600)


def test_functions_are_not_kept_with_the_parameters_of_a_fit():
    """Who takes a scorer over private rows out of a search, takes it out."""
    search = DPRandomizedSearch(
        DPLeastSquares(classes=[0, 1]),
        {"ridge": [1.0]},
        scoring=lambda *_: 0.0,
        mean_runs=1.0,
    )
    keep_params(search)
    assert not {"scoring", "param_distributions"} & {*vars(search)["_params_of_fit"]}


def test_a_ledger_is_replaced_by_no_file(tmp_path):
    """All that was charged would be gone."""
    path = tmp_path / "l"
    ledger = PrivacyLedger(path, dataset="d", epsilon=1.0, delta=1e-5)
    assert path.read_bytes().startswith(LEDGER)
    for write in (
        lambda: write_atomically(path, b"a page"),
        lambda: write_features(path, {"train": (np.eye(2), [0, 1])}, overwrite=True),
    ):
        with pytest.raises(ValueError, match="it is a ledger"):
            write()
    assert PrivacyLedger(path, dataset="d").budget == ledger.budget
