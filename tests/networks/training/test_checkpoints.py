"""Folders of checkpoints: what is in them, who may use them, and what is refused."""

import json
import shutil

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

from privfeat import PrivacyError, PrivacyLedger, load, save
from privfeat.networks.training.checkpoints import open_checkpoints
from privfeat.networks.training.loop import TrainState
from privfeat.networks.weights import build
from tests.networks.dying import make_charged, make_classifier, steps_in

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.mark.slow
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


@pytest.mark.slow
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
    (charge,) = ledger.history
    restored = make_charged(tmp_path / "kept", ledger).restore()
    assert restored.privacy_.charge == charge.statement.charge is not None
    for name, leaf in before.items():
        assert np.array_equal(first.parameters_[name], leaf)


def test_a_fit_is_restored_with_the_ledger_that_holds_its_charge_or_none(
    tmp_path, records
):
    """A ledger that was passed afterwards alone charged nothing, without a word."""
    path = tmp_path / "x.ledger"
    ledger = PrivacyLedger(path, dataset="x", epsilon=500.0, delta=1e-5)
    make_charged(tmp_path / "kept", None).fit(*records)
    with pytest.raises(PrivacyError, match="must hold the charge of the fit"):
        make_charged(tmp_path / "kept", ledger).restore()
    restored = make_charged(tmp_path / "kept", None).restore()
    ledger.charge(restored.privacy_, estimator="DPSGDClassifier")
    # its statement has no name of a charge, by which one finds it again
    with pytest.raises(PrivacyError, match="must hold the charge of the fit"):
        make_charged(tmp_path / "kept", ledger).restore()
    other = PrivacyLedger(path, dataset="other", epsilon=500.0, delta=1e-5)
    make_charged(tmp_path / "more", ledger).fit(*records)
    with pytest.raises(PrivacyError, match="must hold the charge of the fit"):
        make_charged(tmp_path / "more", other).restore()


@pytest.mark.slow
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


class Made:
    """Makes the network of a fit."""

    def __call__(self, shape, n_outputs, *, rngs):
        return build("mlp", shape, n_outputs, rngs=rngs)


@pytest.mark.slow
def test_a_model_that_is_a_function_is_known_by_its_class(tmp_path, records):
    first = make_classifier(tmp_path, model=Made(), n_iter=1).fit(*records)
    again = make_classifier(tmp_path, model=Made(), n_iter=1).restore()
    assert np.array_equal(again.predict(records[0]), first.predict(records[0]))
    for other in (Made().__call__, "mlp"):
        with pytest.raises(ValueError, match="must hold a fit of these parameters"):
            make_classifier(tmp_path, model=other, n_iter=1).restore()


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


@pytest.mark.slow
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
    assert steps_in(tmp_path) == ["0"]


def test_a_checkpoint_of_another_number_is_refused(tmp_path):
    """A fit that went on from it would count steps as drawn that were not."""
    state = TrainState(2, {"w": np.zeros(3)}, {}, None)
    with open_checkpoints(tmp_path) as checkpoints:
        checkpoints.keep(state, 9, None, last=True)
        assert checkpoints.newest(state)[0].step == 2
    (tmp_path / "2").rename(tmp_path / "4")
    with (
        open_checkpoints(tmp_path) as checkpoints,
        pytest.raises(ValueError, match=r"that are whole, got number 4 damaged"),
    ):
        checkpoints.newest(state)


def test_nothing_is_read_of_a_write_that_was_interrupted(tmp_path):
    state = TrainState(2, {"w": np.zeros(3)}, {}, None)
    with open_checkpoints(tmp_path) as checkpoints:
        checkpoints.keep(state, 9, None, last=True)
    (tmp_path / "2").rename(tmp_path / "2.orbax-checkpoint-tmp-7")
    with open_checkpoints(tmp_path) as checkpoints:
        assert checkpoints.newest(state) is None
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_saved_network_does_not_hold_the_folder(tmp_path, records):
    clf = make_classifier(tmp_path / "kept", n_iter=1).fit(*records)
    save(clf, tmp_path / "model")
    assert load(tmp_path / "model").checkpoint_dir is None
