"""A training that was interrupted, called again."""

import pytest

from privfeat import LedgerError
from privfeat.networks.training.resuming import GOES_ON
from tests.cli.tiny import train_on as command

pytest.importorskip("flax")
pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.mark.slow
def test_train_says_where_it_goes_on(folder, capsys, plant):
    kept = ("--checkpoints", str(folder / "kept"), "--checkpoint-every", "3")
    original, left = plant.genuine("release of a sum"), iter(range(7))

    def release(self, *args, **kwargs):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return original(self, *args, **kwargs)

    with plant.context() as patch:
        patch("release of a sum", release)
        assert command(folder, *kept) == 130
    said = capsys.readouterr().err
    assert "The same fit goes on from its last checkpoint" in said
    assert command(folder, *kept) == 0
    printed = capsys.readouterr()
    assert "holds 6 of 10 steps" in printed.err
    assert "goes on from step 6, and is not charged again" in printed.err
    assert "epsilon" not in printed.err  # it was charged before


@pytest.mark.slow
def test_train_says_that_it_goes_on_after_an_error(folder, capsys, plant):
    original, calls = plant.genuine("save of a checkpoint"), iter(range(9))

    def save(*args):
        if next(calls):
            raise LedgerError("the server is away.")
        original(*args)

    plant("save of a checkpoint", save)
    assert command(folder, "--checkpoints", str(folder / "kept")) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"privfeat: error: the server is away. {GOES_ON} The fit had drawn noise: its "
        "budget is spent."
    )
