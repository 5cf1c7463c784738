"""Fits that are interrupted and go on: the same result, one charge, no noise twice."""

import json
import shutil
import signal
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

from privfeat import (
    LedgerError,
    PrivacyError,
    PrivacyLedger,
    PrivacyWarning,
    load,
    save,
)
from privfeat.audit.recorder import recording
from privfeat.core.ledger import file_store
from privfeat.core.noise import draws as noise
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.networks.training import checkpoints
from privfeat.networks.training.checkpoints import open_checkpoints
from tests.networks.dying import make_charged, make_classifier, make_records

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


class InterruptedFit(Exception):
    pass


@pytest.fixture
def records():
    return make_records()


@pytest.fixture
def drawn(monkeypatch):
    """Collect the noise of all fits."""
    draws = []
    original = noise.gaussian

    def gaussian(key, shape, stddev):
        draws.append(original(key, shape, stddev))
        return draws[-1]

    monkeypatch.setattr(noise, "gaussian", gaussian)
    return draws


@pytest.fixture
def interrupted(monkeypatch, records):
    """Let a fit fail in the middle of a step, after so many draws."""

    def run(clf, n_draws, data=records):
        left = iter(range(n_draws))
        original = GaussianMechanism.release

        def release(self, *args, **kwargs):
            if next(left, None) is None:
                raise InterruptedFit
            return original(self, *args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(GaussianMechanism, "release", release)
            with pytest.raises(InterruptedFit):
                clf.fit(*data)
        return clf

    return run


def steps_in(folder):
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())


@pytest.mark.parametrize(
    ("optimizer", "n_draws"),
    [
        ("adam", 3),
        *(
            pytest.param(name, n_draws, marks=pytest.mark.slow)
            for name, n_draws in product(["adam", "nesterov"], [1, 3, 6])
            if (name, n_draws) != ("adam", 3)
        ),
    ],
)
def test_interrupted_equals_uninterrupted_bit_for_bit(
    tmp_path, records, interrupted, n_draws, optimizer
):
    params = {"random_state": 5, "optimizer": optimizer}
    whole = make_classifier(None, **params).fit(*records)
    interrupted(make_classifier(tmp_path / "kept", **params), n_draws)
    clf = make_classifier(tmp_path / "kept", **params).fit(*records)
    assert clf.privacy_ == whole.privacy_
    assert clf.n_iter_ == 7
    for name, leaf in whole.parameters_.items():
        assert np.array_equal(clf.parameters_[name], leaf)


@pytest.mark.slow
def test_fits_of_users_go_on_alike(tmp_path, records, interrupted):
    """With the same records of each user, in the same orders, where there is a seed."""
    data = (*records, np.arange(30) // 4)
    params = {"random_state": 5, "max_group_size": 3, "expected_batch_size": 4}
    params |= {"local_epochs": 2, "local_batch_size": 2, "clipping": "adaptive"}
    whole = make_classifier(None, **params).fit(*data)
    kept = tmp_path / "kept"
    interrupted(make_classifier(kept, **params), 3, data)
    with pytest.raises(ValueError, match="checkpoint_dir must hold a fit of these"):
        make_classifier(kept, **params | {"local_epochs": 3}).fit(*data)
    clf = make_classifier(kept, **params).fit(*data)
    assert clf.privacy_ == whole.privacy_
    for name, leaf in whole.parameters_.items():
        assert np.array_equal(clf.parameters_[name], leaf)


@pytest.mark.slow
def test_fit_goes_on_after_the_last_checkpoint(tmp_path, records, interrupted, drawn):
    clf = interrupted(make_classifier(tmp_path), 5)
    assert steps_in(tmp_path) == ["4"]
    assert len(drawn) == 5
    clf.fit(*records)
    assert steps_in(tmp_path) == ["7"]
    assert len(drawn) == 5 + 3


@pytest.mark.slow
def test_no_noise_comes_twice_without_a_seed(tmp_path, records, interrupted, drawn):
    interrupted(make_classifier(tmp_path), 5).fit(*records)
    size = len(drawn[0])
    overlap = np.corrcoef(drawn)[np.triu_indices(len(drawn), 1)]
    assert abs(overlap).max() < 6 / np.sqrt(size)


def test_a_finished_fit_is_returned_to_those_who_ask(tmp_path, records, drawn):
    first = make_classifier(tmp_path).fit(*records)
    drawn.clear()
    again = make_classifier(tmp_path, verbose=1).restore()
    assert drawn == []
    assert again.privacy_ == first.privacy_
    fitted = [name for name in vars(first) if name.endswith("_")]
    for name in set(fitted) - {"parameters_", "privacy_"}:
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name))
    assert again.parameters_.keys() == first.parameters_.keys()
    for name, leaf in first.parameters_.items():
        assert np.array_equal(again.parameters_[name], leaf)
    assert np.array_equal(again.predict(records[0]), first.predict(records[0]))
    with pytest.raises(ValueError, match="must hold a fit of these parameters"):
        make_classifier(tmp_path, learning_rate=0.5).restore()


def test_a_finished_folder_answers_no_fit(tmp_path, records, drawn):
    """Neither of other records of that shape, nor of the same, nor uncharged."""
    path = tmp_path / "x.ledger"
    ledger = PrivacyLedger(path, dataset="x", epsilon=500.0, delta=1e-5)
    X, y = records
    first = make_charged(tmp_path / "kept", ledger).fit(X, y)
    before = {name: leaf.copy() for name, leaf in first.parameters_.items()}
    drawn.clear()
    for data in ((-X[::-1], 2 - y), (X, y)):
        with pytest.raises(ValueError, match="must not hold a finished fit"):
            first.fit(*data)
    assert drawn == []
    assert len(ledger.history) == 1
    for name, leaf in before.items():
        assert np.array_equal(first.parameters_[name], leaf)


def test_folds_do_not_share_a_folder(tmp_path, records):
    X, y = records
    clf = make_classifier(tmp_path, random_state=None)
    for fold, (rows, _) in enumerate(KFold(3).split(X)):
        if fold == 0:
            clone(clf).fit(X[rows], y[rows])
            continue
        with pytest.raises(ValueError, match="one for each fold"):
            clone(clf).fit(X[rows], y[rows])


@pytest.mark.parametrize("n_draws", [0, 3])
def test_only_a_finished_fit_is_restored(tmp_path, records, interrupted, n_draws):
    interrupted(make_classifier(tmp_path), n_draws)
    with pytest.raises(ValueError, match="must hold a finished fit to restore"):
        make_classifier(tmp_path).restore()
    with pytest.raises(ValueError, match="must be given to restore"):
        make_classifier(None).restore()


def test_a_fit_that_goes_on_says_so(tmp_path, records, interrupted):
    interrupted(make_classifier(tmp_path), 5)
    with pytest.warns(PrivacyWarning, match="holds 4 of 7 steps.*goes on from step 4"):
        make_classifier(tmp_path).fit(*records)


def test_going_on_with_other_data_moves_no_step_by_more_than_declared(
    tmp_path, records, interrupted
):
    """A record that both runs hold is in each step once: taken out of both, by one."""
    X, y = records
    others = np.concatenate([X[:1], -X[1:]]), np.concatenate([y[:1], 2 - y[1:]])
    full = {"random_state": 7, "expected_batch_size": None, "optimizer": "sgd"}
    full |= {"learning_rate": 1e-9, "ema_decay": None}
    sums = []
    for kept in (slice(0, None), slice(1, None)):
        folder = tmp_path / str(kept.start)
        with recording() as recorder:
            clf = make_classifier(folder, **full)
            interrupted(clf, 4, (X[kept], y[kept]))
            clf.fit(*(part[kept] for part in others))
        sums.append([np.asarray(call.exact) for call in recorder.calls])
    assert len(sums[0]) == len(sums[1]) == 7
    moved = [np.linalg.norm(one - two) for one, two in zip(*sums, strict=True)]
    assert max(moved) <= 1.0 + 1e-4
    assert min(moved) > 0.0
    assert "parameters_" in vars(clf)


@pytest.mark.slow
def test_checkpoints_of_another_fit_are_refused(tmp_path, records, interrupted, drawn):
    interrupted(make_classifier(tmp_path), 3)
    drawn.clear()
    for changed in (
        {"learning_rate": 0.5},
        {"noise_multiplier": 2.0},
        {"n_iter": 8},
        {"clip_norm": 0.5},
        {"random_state": 5},
        {"optimizer": "nesterov"},
        {"frozen": ("layers/0",)},
        {"expected_batch_size": 7},
    ):
        with pytest.raises(ValueError, match="checkpoint_dir must hold a fit of these"):
            make_classifier(tmp_path, **changed).fit(*records)
    assert drawn == []


def test_data_of_another_size_is_refused(tmp_path, records, interrupted):
    interrupted(make_classifier(tmp_path), 3)
    X, y = records
    for part in ((X[1:], y[1:]), (X[:, 1:], y)):
        with pytest.raises(ValueError, match="checkpoint_dir must hold a fit of these"):
            make_classifier(tmp_path).fit(*part)


def test_damaged_checkpoints_are_refused(tmp_path, records, interrupted, drawn):
    """Nothing goes on from an older one, nor anew, without being told."""
    interrupted(make_classifier(tmp_path), 3)
    drawn.clear()
    files = [file for file in (tmp_path / "2" / "state").rglob("*") if file.is_file()]
    for file in files:
        file.write_bytes(b"?")
    with pytest.raises(ValueError, match="checkpoints that are whole"):
        make_classifier(tmp_path).fit(*records)
    assert drawn == []


@pytest.mark.slow
def test_what_an_interrupted_write_left_is_removed(tmp_path, records, interrupted):
    interrupted(make_classifier(tmp_path), 3)
    (tmp_path / "2").rename(tmp_path / "2.orbax-checkpoint-tmp")
    clf = make_classifier(tmp_path)
    interrupted(clf, 1)
    assert steps_in(tmp_path) == []


def test_a_folder_is_held_by_one_fit(tmp_path, records, drawn):
    with (
        open_checkpoints(tmp_path),
        pytest.raises(PrivacyError, match="one fit at a time"),
    ):
        make_classifier(tmp_path).fit(*records)
    assert drawn == []


def test_the_lock_stays_empty_and_a_copy_of_the_folder_is_free(tmp_path):
    folder = tmp_path / "kept"
    with open_checkpoints(folder):
        assert [path.name for path in folder.iterdir()] == [".lock"]
        shutil.copytree(folder, tmp_path / "copy")
        with open_checkpoints(tmp_path / "copy") as copy:
            assert copy.newest(None) is None  # the lock is no checkpoint
    assert (folder / ".lock").read_bytes() == b""


def test_a_checkpoint_holds_releases_alone(tmp_path, records, interrupted):
    """All numbers in it follow from noise: of another seed, none stays the same."""
    contents = []
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        interrupted(make_classifier(folder, random_state=seed), 3)
        tree = json.loads((folder / "2" / "state" / "_METADATA").read_text())
        names = {key.split("'")[1] for key in tree["tree_metadata"]}
        assert names == {"step", "parameters", "optimizer", "average"}
        public = json.loads((folder / "2" / "public" / "metadata").read_text())
        assert public.keys() == {"configuration", "position", "charge"}
        contents.append(public)
    assert contents[0] == contents[1]  # so that no seed is in it


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_a_killed_fit_goes_on_for_one_charge(tmp_path, records, n_draws):
    """Before the first checkpoint nothing is known of the charge, so it stands."""
    path = tmp_path / "x.ledger"
    ledger = PrivacyLedger(path, dataset="x", epsilon=500.0, delta=1e-5)
    code = (
        "from tests.networks.dying import fit_until_killed as f; "
        f"f({str(tmp_path / 'kept')!r}, {str(path)!r}, {n_draws})"
    )
    killed = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [charge.status for charge in ledger.history] == ["asked"]
    clf = make_charged(tmp_path / "kept", ledger).fit(*records)
    kept = ["fitted"] if n_draws == 5 else ["asked", "fitted"]
    assert [charge.status for charge in ledger.history] == kept
    assert ledger.history[-1].statement == clf.privacy_


@pytest.fixture
def charged(tmp_path):
    """Return what makes a charged fit in a folder, and its ledger."""
    path = tmp_path / "x.ledger"
    ledger = PrivacyLedger(path, dataset="x", epsilon=500.0, delta=1e-5)
    return lambda name: make_charged(tmp_path / name, ledger), ledger


def test_of_two_copies_one_goes_on(tmp_path, records, interrupted, charged, drawn):
    """What the other draws until its next checkpoint stays in its process."""
    make, ledger = charged
    interrupted(make("kept"), 3)
    shutil.copytree(tmp_path / "kept", tmp_path / "copy")
    running, copy = make("kept"), make("copy")
    release = GaussianMechanism.release
    calls = iter(range(99))

    def release_while_the_copy_goes_on(self, *args, **kwargs):
        if next(calls) == 0:
            copy.fit(*records)
        return release(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GaussianMechanism, "release", release_while_the_copy_goes_on)
        with pytest.raises(PrivacyError, match="got one that is finished"):
            running.fit(*records)
    assert "parameters_" not in vars(running)
    assert steps_in(tmp_path / "kept") == ["2"]
    assert len(copy.parameters_) > 0
    assert [charge.status for charge in ledger.history] == ["fitted"]


def test_an_older_checkpoint_does_not_go_on(
    tmp_path, records, interrupted, charged, drawn
):
    make, ledger = charged
    interrupted(make("kept"), 3)
    shutil.copytree(tmp_path / "kept", tmp_path / "older")
    interrupted(make("kept"), 3)  # goes on from step 2 to the checkpoint of step 4
    assert [charge.status for charge in ledger.history] == ["asked"]
    drawn.clear()
    with pytest.raises(PrivacyError, match="newest checkpoint, got an older one"):
        make("older").fit(*records)
    assert drawn == []
    make("kept").fit(*records)
    assert [charge.status for charge in ledger.history] == ["fitted"]


@pytest.mark.parametrize("fails", ["_save", "_append"])
def test_a_fit_goes_on_whatever_write_failed(
    tmp_path, records, charged, monkeypatch, fails
):
    """Of the checkpoint, or of the ledger after it."""
    make, ledger = charged
    place = {"_save": checkpoints.Checkpoints, "_append": file_store}[fails]
    original, calls = getattr(place, fails), iter(range(99))

    def fail(*args):
        if next(calls) == (1 if fails == "_save" else 2):  # the first is the charge
            raise OSError("disk full")
        original(*args)

    with monkeypatch.context() as patch:
        patch.setattr(place, fails, fail)
        with pytest.raises((LedgerError, OSError), match="disk full"):
            make("kept").fit(*records)
    written = "2" if fails == "_save" else "4"
    assert steps_in(tmp_path / "kept") == [written]
    make("kept").fit(*records)
    assert [charge.status for charge in ledger.history] == ["fitted"]


def test_ledgers_cannot_be_changed_on_the_way(tmp_path, records, interrupted, drawn):
    ledgers = [
        PrivacyLedger(tmp_path / "x.ledger", dataset=name, epsilon=500.0, delta=1e-5)
        for name in "xy"
    ]
    kept = tmp_path / "kept"
    interrupted(make_charged(kept, ledgers[0]), 3)
    drawn.clear()
    for ledger in (None, ledgers[1]):
        with pytest.raises(ValueError, match="checkpoint_dir must hold a fit of these"):
            make_charged(kept, ledger).fit(*records)
    ledgers[0].finish(1)  # as by the fit of a copied folder
    with pytest.raises(PrivacyError, match="got one that is finished"):
        make_charged(kept, ledgers[0]).fit(*records)
    assert drawn == []


@pytest.mark.parametrize(
    "params",
    [
        {"checkpoint_dir": 3},
        {"checkpoint_dir": __file__},
        {"checkpoint_every": 0},
        {"checkpoint_every": np.nan},
        {"checkpoint_every": True},
    ],
)
def test_bad_parameters_are_refused(records, drawn, params):
    with pytest.raises((TypeError, ValueError), match="checkpoint_"):
        make_classifier(None, **params).fit(*records)
    assert drawn == []


def test_a_saved_network_does_not_hold_the_folder(tmp_path, records):
    clf = make_classifier(tmp_path / "kept", n_iter=1).fit(*records)
    save(clf, tmp_path / "model")
    assert load(tmp_path / "model").checkpoint_dir is None
