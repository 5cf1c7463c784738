"""The example of "Adding a mechanism", as its user writes it, passes what ours pass."""

import sys
from importlib import import_module

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from privfeat import PrivacyLedger, audit
from privfeat.core.accounting.plan import Query
from tests.pages.blocks import GUIDES, blocks_of


@pytest.fixture(scope="module")
def counted_mean(tmp_path_factory):
    """Return the example of a new mechanism as the module that its user writes."""
    (code,) = (
        block.code
        for block in blocks_of(GUIDES / "mechanism.md")
        if block.code.startswith("# counted_mean.py\n")
    )
    folder = tmp_path_factory.mktemp("mechanism")
    (folder / "counted_mean.py").write_text(code)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield import_module("counted_mean")
        sys.modules.pop("counted_mean")


@pytest.mark.filterwarnings(
    "ignore::privfeat.exceptions.PrivacyWarning",
    "ignore::sklearn.exceptions.SkipTestWarning",
)
def test_new_mechanism_passes_every_check_of_sklearn(counted_mean):
    check_estimator(counted_mean.DPCountedMean())


def extreme_rows():
    """Return rows of three classes; the last is the longest and alone in its class."""
    return (
        [[1, 0, 0], [1, 1, 0], [0, 2, 0], [0, 1, 1], [0, 0, 0], [-9, -9, -9]],
        [0, 0, 1, 1, 1, 2],
    )


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("record", range(6))
def test_new_mechanism_moves_as_declared(counted_mean, adjacency, record):
    clf = counted_mean.DPCountedMean(epsilon=1, classes=range(3), adjacency=adjacency)
    assert audit.replay(clf, *extreme_rows(), record=record).ok


def test_new_mechanism_protects_users_and_charges_a_ledger(counted_mean, tmp_path):
    X, y = extreme_rows()
    ledger = PrivacyLedger(tmp_path / "a.ledger", dataset="a", epsilon=1, delta=1e-5)
    clf = counted_mean.DPCountedMean(epsilon=1, classes=range(3), max_group_size=2)
    groups = [0, 0, 1, 1, 2, 2]
    assert audit.replay(clf, X, y, user=2, groups=groups).ok
    clf.set_params(max_group_size=None, ledger=ledger).fit(X, y)
    assert 0.999 < ledger.spent.epsilon <= 1.0


def test_replay_notices_a_bound_that_is_too_small(counted_mean):
    class TooSmall(counted_mean.DPCountedMean):
        def _queries(self, shape):
            return [Query("class_sums", 0.5)]

    clf = TooSmall(epsilon=1, classes=range(3))
    assert not audit.replay(clf, *extreme_rows(), record=5).ok


def test_replay_notices_a_small_bound_of_centred_rows(counted_mean):
    class TooSmall(counted_mean.DPCountedMean):
        def _queries(self, shape):
            return [Query("class_sums", 1.36)]  # a little less than sqrt(2)

    X, y = np.random.default_rng(0).normal([4, 0, 0, 0], size=(900, 4)), [0, 1, 2] * 300
    for kind, ok in ((counted_mean.DPCountedMean, True), (TooSmall, False)):
        clf = kind(epsilon=8, classes=range(3), adjacency="replace_one")
        assert audit.replay(clf, X, y, record=5).ok is ok


def test_new_mechanism_is_refused_a_bad_parameter_and_a_column_too_few(counted_mean):
    with pytest.raises(ValueError, match="least_count must be"):
        counted_mean.DPCountedMean(least_count=-1.0).fit(*extreme_rows())

    class Narrow(counted_mean.DPCountedMean):
        def _solve(self, *given):
            return super()._solve(*given)[:, :-1]

    with pytest.raises(ValueError, match=r"_solve must return .* \(3, 4\) here, got"):
        Narrow(epsilon=1, classes=range(3)).fit(*extreme_rows())


def test_new_mechanism_finds_the_counted_mean(counted_mean):
    X, y = extreme_rows()
    clf = counted_mean.DPCountedMean(epsilon=1e6, classes=range(3))
    with pytest.warns(match="epsilon"):
        clf.fit(X, y)
    assert clf.predict([[2, 0.1, 0], [0, 5, 1], [-1, -1, -1]]).tolist() == [0, 1, 2]
