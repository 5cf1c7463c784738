"""A fit that is charged is not lost where a checkpoint cannot be written."""

import numpy as np
import pytest

from privfeat.exceptions import LedgerError, PrivacyWarning
from privfeat.networks.training.checkpoints import open_checkpoints
from privfeat.networks.training.loop import TrainState
from tests.combinations import few
from tests.networks.dying import steps_in

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


def test_a_fit_that_can_keep_nothing_is_not_lost(tmp_path, records, charged, plant):
    """It is paid for, and there is no checkpoint from which another run could go on."""

    def full(*_):
        raise OSError("disk full")

    make, ledger = charged
    plant("save of a checkpoint", full)
    with pytest.warns(PrivacyWarning, match="could not take a checkpoint of step 7"):
        clf = make("kept").fit(*records)
    assert "parameters_" in vars(clf)
    assert [charge.status for charge in ledger.history] == ["fitted"]


def test_a_disk_without_room_for_checkpoints_is_refused(tmp_path):
    """Before the charge: `newest` has found nothing."""
    large = np.broadcast_to(np.float32(0.0), (2**60,))  # takes no memory
    state = TrainState(0, {"w": large}, {}, None)
    with (
        open_checkpoints(tmp_path) as checkpoints,
        pytest.raises(OSError, match="room for two checkpoints, of 9,223,"),
    ):
        checkpoints.check_room(state)


WRITES = {"_save": "save of a checkpoint", "_append": "append to a ledger file"}


@pytest.mark.slow
@pytest.mark.parametrize("fails", few(1, WRITES))
def test_a_fit_goes_on_whatever_write_failed(tmp_path, records, charged, plant, fails):
    """Of the checkpoint of step 2, or of the ledger after that of step 4."""
    make, ledger = charged
    original, calls = plant.genuine(WRITES[fails]), iter(range(99))

    def fail(*args):
        if next(calls) == (1 if fails == "_save" else 3):  # after the charge and step 0
            raise OSError("disk full")
        original(*args)

    step = 2 if fails == "_save" else 4
    plant(WRITES[fails], fail)
    with pytest.warns(PrivacyWarning, match=f"not take a checkpoint of step {step}"):
        make("kept").fit(*records)
    assert steps_in(tmp_path / "kept") == ["7"]
    assert [charge.status for charge in ledger.history] == ["fitted"]


@pytest.mark.slow
def test_a_fit_without_its_last_checkpoint_goes_on_from_the_one_before(
    tmp_path, records, charged, plant
):
    """Its model with an older checkpoint would be two runs of the steps between."""
    make, ledger = charged
    original, calls = plant.genuine("save of a checkpoint"), iter(range(99))

    def fail(*args):
        if next(calls) == 4:
            raise OSError("disk full")
        original(*args)

    clf = make("kept")
    with plant.context() as patch:
        patch("save of a checkpoint", fail)
        with pytest.raises((LedgerError, OSError), match="disk full"):
            clf.fit(*records)
    assert "parameters_" not in vars(clf)
    assert steps_in(tmp_path / "kept") == ["6"]
    make("kept").fit(*records)
    assert [charge.status for charge in ledger.history] == ["fitted"]
