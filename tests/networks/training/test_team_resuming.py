"""Several processes, here threads, and checkpoints: the first writes, all agree."""

import pytest

from privfeat import DPSGDClassifier, PrivacyLedger
from privfeat.exceptions import PrivacyError
from tests.networks.dying import make_charged, steps_in
from tests.networks.tiny import TINY
from tests.networks.training.conftest import InterruptedFit
from tests.networks.training.test_team import check_same_fit

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning"),
]

FULL = TINY | {"expected_batch_size": None, "checkpoint_every": 2, "n_iter": 5}
FULL |= {"ema_decay": 0.9, "optimizer": "adam"}


@pytest.fixture
def broken_off(plant):
    """Let a function run in which every process fails at one release."""

    def run(function, n_draws):
        left, original = {}, plant.genuine("release of a sum")

        def release(self, *args, **kwargs):
            index = self._team.index
            if next(left.setdefault(index, iter(range(n_draws))), None) is None:
                raise InterruptedFit
            return original(self, *args, **kwargs)

        with plant.context() as patch:
            patch("release of a sum", release)
            return function()

    return run


@pytest.mark.parametrize("optimizer", ["adam", "sgld"])
def test_two_processes_go_on_where_they_were_interrupted(
    records, together, broken_off, tmp_path, optimizer
):
    """Each names a folder of its own, and only that of the first is used."""
    params = FULL | {"optimizer": optimizer}
    alone = DPSGDClassifier(**params).fit(*records)
    folders = [tmp_path / "first", tmp_path / "second"]

    def fit(index):
        clf = DPSGDClassifier(checkpoint_dir=folders[index], **params)
        return clf.fit(*records)

    for found in broken_off(lambda: together(fit), 3):
        assert isinstance(found, InterruptedFit)
    assert steps_in(folders[0]) == ["2"]
    for found in together(fit):
        check_same_fit(found, alone)
    assert steps_in(folders[0]) == ["5"]
    assert not folders[1].exists()
    restored = DPSGDClassifier(checkpoint_dir=folders[0], **params).restore()
    check_same_fit(restored, alone)


def test_one_process_goes_on_where_two_were_interrupted(
    records, together, broken_off, tmp_path
):
    alone = DPSGDClassifier(**FULL).fit(*records)
    clf = DPSGDClassifier(checkpoint_dir=tmp_path, **FULL)
    broken_off(lambda: together(lambda _: clf.fit(*records)), 3)
    check_same_fit(clf.fit(*records), alone)


def test_a_folder_that_the_first_cannot_use_is_refused_by_all(
    records, together, released, tmp_path
):
    clf = DPSGDClassifier(checkpoint_dir=tmp_path, **FULL).fit(*records)
    released.clear()
    first, second = together(lambda _: clf.fit(*records))
    assert "must not hold a finished fit" in str(first)
    assert isinstance(second, PrivacyError)
    assert "the first process must be able to use checkpoint_dir" in str(second)
    assert not released


@pytest.mark.filterwarnings("ignore:checkpoint_dir could not take a checkpoint")
def test_a_checkpoint_that_cannot_be_written_ends_none(
    records, together, tmp_path, plant
):
    def full(self, *_):
        raise OSError("disk full")

    plant("save of a checkpoint", full)
    clf = DPSGDClassifier(checkpoint_dir=tmp_path, **FULL)
    check_same_fit(
        *together(lambda _: DPSGDClassifier(**clf.get_params()).fit(*records))
    )


def test_two_processes_are_charged_once_in_two_runs(
    records, together, broken_off, tmp_path
):
    ledger = PrivacyLedger(tmp_path / "l", dataset="x", epsilon=500.0, delta=1e-5)

    def fit(index):
        return make_charged(tmp_path / "kept", ledger).fit(*records)

    broken_off(lambda: together(fit), 4)
    (charge,) = ledger.history
    assert charge.status != "fitted"
    check_same_fit(*together(fit))
    (charge,) = ledger.history
    assert charge.status == "fitted"
