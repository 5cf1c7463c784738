"""The first records of a data set, which are for trials."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from privfeat import DPNearestMean, PrivacyLedger
from privfeat.data import join_features, open_features, write_features
from privfeat.exceptions import PrivacyError, PrivacyWarning


def test_extract_limits_each_split(images, scatter, tmp_path):
    assert scatter(images, "--limit", 3)[0] == 0
    file = open_features(tmp_path / "out.h5")
    assert {name: len(split) for name, split in file.items()} == {"train": 3, "test": 3}
    assert file.metadata["limit"] == 3


@pytest.mark.filterwarnings("ignore:random_state makes")
def test_the_first_records_alone_are_for_trials(images, scatter, tmp_path):
    """One record less lets another one in: two rows changed, and one was stated."""
    assert scatter(images, "--limit", 5)[0] == 0
    split = open_features(tmp_path / "out.h5")["train"]
    with pytest.warns(PrivacyWarning, match="X holds the first records of its data"):
        DPNearestMean(epsilon=1.0, classes=[0, 1], random_state=0).fit(split.X, split.y)
    ledger = PrivacyLedger(tmp_path / "l", dataset="x", epsilon=9.0, delta=1e-5)
    clf = DPNearestMean(epsilon=1.0, classes=[0, 1], ledger=ledger)
    with pytest.raises(PrivacyError, match="one record less lets another one in"):
        clf.fit(split.X, split.y)
    with pytest.raises(PrivacyError, match="one record less lets another one in"):
        make_pipeline(Normalizer(), clf).fit(split.X, split.y)
    copy = tmp_path / "copy.h5"
    write_features(copy, {"train": (split.X, split.y)})
    with pytest.raises(PrivacyError, match="one record less lets another one in"):
        clf.fit(open_features(copy)["train"].X, split.y)
    for shard, rows in (("1.h5", split.X), ("2.h5", split.X[:] + 1)):
        write_features(tmp_path / shard, {"train": (rows, split.y)})
    join_features(tmp_path / "j.h5", [tmp_path / "1.h5", tmp_path / "2.h5"])
    joined = open_features(tmp_path / "j.h5")["train"]
    with pytest.raises(PrivacyError, match="one record less lets another one in"):
        clf.fit(joined.X, joined.y)
    whole = {"train": (split.X[:] - 1, split.y)}
    write_features(tmp_path / "0.h5", whole, metadata={"limit": None})
    join_features(tmp_path / "k.h5", [tmp_path / "0.h5", tmp_path / "1.h5"])
    assert open_features(tmp_path / "k.h5")["train"].X.limited
    assert not ledger.history
    assert scatter(images, "--overwrite")[0] == 0
    split = open_features(tmp_path / "out.h5")["train"]
    clf.fit(split.X, split.y)
    assert len(ledger.history) == 1


def test_a_file_of_a_part_of_a_split_counts_as_one_of_first_records(tmp_path):
    """As earlier releases wrote them, where a name of a split may cut it by place."""
    rows = np.eye(4, dtype=np.float32), [0, 1, 0, 1]
    names = ("train", "train[:4]", "fold[1]")
    write_features(tmp_path / "part.h5", dict.fromkeys(names, rows))
    with open_features(tmp_path / "part.h5") as file:
        limited = {name: split.X.limited for name, split in file.items()}
    assert limited == {"train": False, "train[:4]": True, "fold[1]": False}
