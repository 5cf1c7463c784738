import math

import numpy as np
import pandas as pd
import pytest

from privfeat.exceptions import PrivacyWarning
from privfeat.preprocessing import DPClassCounts

CLASSES = ["ill", "unknown", "well"]
LABELS = ["ill"] * 30 + ["well"] * 70


@pytest.mark.filterwarnings("ignore:epsilon should be at most 20")
def test_counts_without_noise_are_counts():
    found = DPClassCounts(classes=CLASSES, epsilon=math.inf).fit(None, LABELS)
    assert found.classes_.tolist() == CLASSES
    assert found.counts_.tolist() == [30, 0, 70]
    assert found.class_prior_.tolist() == [0.3, 0.0, 0.7]


def test_noise_of_counts_is_that_of_one_record():
    found = DPClassCounts(classes=CLASSES, noise_multiplier=2.0).fit(None, LABELS)
    (release,) = found.privacy_.releases
    assert release.noise_stddev == pytest.approx(2.0, rel=1e-5)
    pair = DPClassCounts(classes=CLASSES, adjacency="replace_one").planned(0)
    assert pair.releases[0].query.l2_sensitivity == pytest.approx(math.sqrt(2))


def test_priors_are_equal_where_nothing_is_above_zero(plant):
    plant("Gaussian noise", lambda key, shape, stddev: np.full(shape, -1e6))
    found = DPClassCounts(classes=CLASSES).fit(None, LABELS)
    assert found.class_prior_ == pytest.approx(1 / 3)


def test_classes_that_are_read_are_warned_of():
    with pytest.warns(PrivacyWarning, match="classes=None reads"):
        DPClassCounts().fit(None, LABELS)


def test_labels_out_of_the_classes_are_refused():
    for y in (["other"], None, np.eye(3)):
        with pytest.raises((TypeError, ValueError), match=r"y |classes"):
            DPClassCounts(classes=["ill", "well"]).fit(None, y)
    with pytest.raises(ValueError, match="one label a record, got several"):
        DPClassCounts(classes=CLASSES).fit(None, np.eye(3, dtype=int))
    with pytest.raises(ValueError, match="inconsistent"):
        DPClassCounts(classes=CLASSES).fit(np.zeros((3, 1)), LABELS)


def test_counts_refuse_users_in_another_order_than_the_labels():
    """Without X nothing compared them: records counted for other users."""
    y = pd.Series(LABELS)
    users = (y.index.to_series() // 4)[::-1]
    counts = DPClassCounts(classes=CLASSES, max_group_size=2, random_state=0)
    with pytest.raises(ValueError, match="must have the index of X and y"):
        counts.fit(None, y, groups=users)
    with pytest.raises(ValueError, match="must have the index of X and y"):
        counts.fit(np.zeros((len(y), 1)), y, groups=users)
