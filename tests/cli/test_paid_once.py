"""A longer command that was stopped in its fit does not pay for it again."""

import shutil
from contextlib import suppress

import numpy as np
import pytest

from privfeat import DPLeastSquares, DPSGDClassifier, PrivacyLedger, persistence
from privfeat.cli.shared.commands import paid_once
from privfeat.cli.shared.terminal import CommandError
from tests.cli.test_recipe import SMALL
from tests.cli.test_workflow import command
from tests.cli.tiny import fit_arguments
from tests.core.ledgers import make_statement


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "l", dataset="x", epsilon=9.0, delta=1e-5)


def stopped(folder, ledger, *, charged, network=False):
    with suppress(KeyboardInterrupt), paid_once(folder, ledger, network=network):
        if charged:
            ledger.charge(make_statement(epsilon=0.5), estimator="DPFC")
        raise KeyboardInterrupt


def test_a_fit_that_was_charged_and_stopped_is_refused(tmp_path, ledger):
    ledger.charge(make_statement(epsilon=0.5), estimator="DPFC")  # of somebody else
    stopped(tmp_path, ledger, charged=True)
    for _ in range(2):  # the fit may be done, and its model lost
        with (
            pytest.raises(CommandError, match="charge 2 of 'x' was made"),
            paid_once(tmp_path, ledger, network=False),
        ):
            pass
    (tmp_path / "fit.begun.json").unlink()
    with paid_once(tmp_path, ledger, network=False) as more:
        assert more == []
    assert not (tmp_path / "fit.begun.json").exists()


def test_a_network_goes_on_only_from_a_checkpoint(tmp_path, ledger):
    """Stopped between the charge and the first one, it was paid for twice."""
    stopped(tmp_path, ledger, charged=True, network=True)
    with (
        pytest.raises(CommandError, match="charge 1 of 'x' was made"),
        paid_once(tmp_path, ledger, network=True),
    ):
        pass
    (tmp_path / "unfinished-training" / "0").mkdir(parents=True)
    with paid_once(tmp_path, ledger, network=True) as words:
        assert words[0] == "--checkpoints"
    assert [path.name for path in tmp_path.iterdir()] == ["l"]


def test_a_fit_that_was_stopped_before_its_charge_begins_anew(tmp_path, ledger):
    stopped(tmp_path, ledger, charged=False)
    with paid_once(tmp_path, ledger, network=False):
        pass
    assert not (tmp_path / "fit.begun.json").exists()


def test_a_fit_without_a_ledger_leaves_no_note(tmp_path):
    with paid_once(tmp_path, None, network=False):
        assert [*tmp_path.glob("fit*")] == []


def test_checkpoints_are_kept_until_the_network_is_trained(tmp_path):
    with suppress(KeyboardInterrupt), paid_once(tmp_path, None, network=True) as words:
        (tmp_path / "unfinished-training").mkdir()
        raise KeyboardInterrupt
    assert (tmp_path / "unfinished-training").exists()
    with paid_once(tmp_path, None, network=True) as again:
        assert (
            again == words == ["--checkpoints", str(tmp_path / "unfinished-training")]
        )
    assert not (tmp_path / "unfinished-training").exists()


@pytest.mark.slow
def test_a_network_that_is_trained_and_not_saved_is_restored(tmp_path):
    pytest.importorskip("flax")
    kept = tmp_path / "unfinished-training"
    clf = DPSGDClassifier(
        model="mlp",
        noise_multiplier=1.0,
        classes=[0, 1],
        n_iter=1,
        expected_batch_size=4,
        checkpoint_dir=kept,
    )
    clf.fit(np.zeros((8, 2)), np.arange(8) % 2)
    with paid_once(tmp_path, None, network=True) as words:
        assert words == ["--checkpoints", str(kept), "--restore"]
    assert not kept.exists()


def interrupt_charged_fits(plant, ledger):
    """Interrupt the first release after a charge."""
    original = plant.genuine("release of a sum")

    def release(self, *args, **kwargs):
        if ledger.history:
            raise KeyboardInterrupt
        return original(self, *args, **kwargs)

    plant("release of a sum", release)


@pytest.mark.slow
def test_a_recipe_that_was_stopped_goes_on_for_one_charge(
    run, folder, tmp_path, tmp_path_factory, ledger, plant
):
    place = tmp_path_factory.mktemp("recipe")
    private, found = shutil.copytree(folder, place / "private"), place / "found"
    charged = ("--ledger", tmp_path / "l", "--dataset", "x", "--data", private)
    words = ("recipe", found, "--public", folder, *SMALL, *charged)
    with plant.context() as patch:
        interrupt_charged_fits(patch, ledger)
        assert run(*words)[0] == 130
    assert run(*words)[0] == 0
    assert [charge.status for charge in ledger.history] == ["fitted"]
    model = persistence.load_statement(found / "model")
    assert model.charge == ledger.history[0].statement.charge
    assert not (found / "unfinished-training").exists()


@pytest.mark.slow
def test_a_workflow_that_was_stopped_does_not_pay_again(
    run, fails, features, tmp_path, ledger, plant
):
    pytest.importorskip("jax_privacy")
    pytest.importorskip("jinja2")
    charged = ("--ledger", tmp_path / "l", "--dataset", "x")
    words = command(tmp_path / "results", features, *charged)
    with plant.context() as patch:
        interrupt_charged_fits(patch, ledger)
        assert run(*words)[0] == 130
    assert "must not be paid for twice" in fails(*words)
    (tmp_path / "results" / "fit.begun.json").unlink()
    assert run(*words)[0] == 0
    assert [charge.status for charge in ledger.history] == ["asked", "fitted"]
    assert not [*(tmp_path / "results").glob("fit.begun*")]


@pytest.mark.parametrize("place", ["fit of a linear model", "write of a model file"])
def test_fit_says_that_it_was_charged_whatever_fails_after(
    run, features, tmp_path, plant, place
):
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=50.0, delta=1e-5)
    of = {"of": DPLeastSquares} if place.startswith("fit") else {}
    real = plant.genuine(place, **of)

    def broken(*args, **kwargs):
        if of:
            real(*args, **kwargs)
        raise MemoryError

    plant(place, broken, **of)
    paid = ("--ledger", tmp_path / "l", "--dataset", "d", "--quiet")
    status, _, message = run(*fit_arguments(features, tmp_path / "m"), *paid)
    assert (status, message[-17:]) == (1, "budget is spent.\n")
    assert len(ledger.history) == 1
