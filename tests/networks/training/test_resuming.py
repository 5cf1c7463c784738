"""Fits that are interrupted and go on: the same result, one charge, no noise twice."""

import shutil
import signal
import subprocess
import sys
from itertools import product
from types import MappingProxyType

import numpy as np
import pytest

from privfeat import (
    DPSGDClassifier,
    LedgerError,
    PrivacyError,
    PrivacyLedger,
    PrivacyWarning,
)
from privfeat.audit.recorder import recording
from privfeat.core.ledger.runs import finish
from privfeat.networks.training.resuming import GOES_ON, _parameters_as_text
from tests.networks.dying import make_charged, make_classifier, steps_in

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("optimizer", "n_draws"),
    [
        ("adam", 3),
        *(
            pytest.param(name, n_draws, marks=pytest.mark.slow)
            for name, n_draws in product(["adam", "nesterov", "sghmc"], [1, 3, 6])
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


@pytest.mark.slow
def test_a_fit_that_goes_on_says_so(tmp_path, records, interrupted, capsys, plant):
    plant("seconds between lines", 0.0)
    interrupted(make_classifier(tmp_path), 5)
    capsys.readouterr()
    with pytest.warns(PrivacyWarning, match="holds 4 of 7 steps.*goes on from step 4"):
        make_classifier(tmp_path, verbose=1).fit(*records)
    shown = capsys.readouterr().err
    assert shown.startswith("DPSGDClassifier, gradients: step 4 of 7")
    assert "step 7 of 7" in shown
    assert "epsilon" not in shown  # it was charged before


@pytest.mark.slow
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
@pytest.mark.parametrize("n_draws", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_a_killed_fit_goes_on_for_one_charge(tmp_path, records, n_draws):
    """Before the first step as well: the same fit was charged a second time."""
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
    (charge,) = ledger.history
    assert charge.status == "fitted"
    assert charge.statement == clf.privacy_
    assert charge.statement.charge == clf.privacy_.charge is not None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:checkpoint_dir could not take a checkpoint")
def test_a_fit_that_ends_early_says_that_it_can_go_on(tmp_path, records, plant):
    """Not if another run has gone on with it."""

    path = tmp_path / "x.ledger"
    ledger = PrivacyLedger(path, dataset="x", epsilon=500.0, delta=1e-5)
    original, calls = plant.genuine("save of a checkpoint"), iter(range(99))

    def save(*args):
        if next(calls):
            raise failure
        original(*args)

    for name, failure, n_told in (
        ("away", LedgerError("the server is away"), 1),
        ("other", PrivacyError("another run has gone on"), 0),
    ):
        calls = iter(range(99))
        with plant.context() as patch:
            patch("save of a checkpoint", save)
            with pytest.raises(type(failure)) as caught:
                make_charged(tmp_path / name, ledger).fit(*records)
        assert caught.value.__notes__[:-1] == n_told * [GOES_ON]
        assert caught.value.__notes__[-1].startswith("The fit was charged, as number")


@pytest.mark.slow
def test_of_two_copies_one_goes_on(
    tmp_path, records, interrupted, charged, drawn, plant
):
    """What the other draws until its next checkpoint stays in its process."""
    make, ledger = charged
    interrupted(make("kept"), 3)
    shutil.copytree(tmp_path / "kept", tmp_path / "copy")
    running, copy = make("kept"), make("copy")
    release = plant.genuine("release of a sum")
    calls = iter(range(99))

    def release_while_the_copy_goes_on(self, *args, **kwargs):
        if next(calls) == 0:
            copy.fit(*records)
        return release(self, *args, **kwargs)

    with plant.context() as patch:
        patch("release of a sum", release_while_the_copy_goes_on)
        with pytest.raises(PrivacyError, match="got one that is finished"):
            running.fit(*records)
    assert "parameters_" not in vars(running)
    assert steps_in(tmp_path / "kept") == ["2"]
    assert len(copy.parameters_) > 0
    assert [charge.status for charge in ledger.history] == ["fitted"]


@pytest.mark.slow
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
    token = ledgers[0].history[0].token
    finish(ledgers[0], 1, [token])  # as by the fit of a copied folder
    with pytest.raises(PrivacyError, match="got one that is finished"):
        make_charged(kept, ledgers[0]).fit(*records)
    assert drawn == []


def test_bounds_by_layer_are_compared_whatever_kind_of_mapping_holds_them():
    def described(bounds):
        clf = DPSGDClassifier(clip_norm=bounds, clip_style="layerwise")
        return _parameters_as_text(clf)

    kept = described({"": 1.0})
    assert described(MappingProxyType({"": 1.0})) == kept
    assert described({"": 2.0}) != kept
