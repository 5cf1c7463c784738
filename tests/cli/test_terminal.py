"""What commands show on a terminal, and what they write into a log."""

import os
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from privfeat import BudgetExceededError, DPLeastSquares, PrivacyLedger
from privfeat.cli.shared.terminal import ASK_LEDGER, charged_within
from tests.cli.tiny import fit_arguments


def on_a_terminal(*argv):
    """Return what a process writes to a terminal that does not say its size."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, *map(str, argv)], stdout=theirs, stderr=theirs, stdin=theirs
    ) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 2**16)
            except OSError:  # the process has closed it
                break
            if not part:
                break
            written += part
    os.close(ours)
    assert process.returncode == 0, written
    return written.decode()


def test_a_terminal_gets_bars():
    code = (
        "from privfeat._progress import *\n"
        "with progress('A'):\n"
        "  with phase('Gram matrix'): list(passing(range(9), 9))\n"
        "  list(steps('gradients', 3))\n"
    )
    written = on_a_terminal("-c", code)
    assert re.search(r"\rA, Gram matrix:   0%\|.*\| \[00:00<\?\]", written)
    assert re.search(r"\rA, gradients: 3/3 steps \|.*\| \[00:00<00:00\]\r?\n", written)


@pytest.mark.slow
def test_fit_shows_bars_on_a_terminal_and_one_line_in_a_pipe(features, tmp_path):
    command = ("-c", "from privfeat.cli import main; raise SystemExit(main())")
    arguments = [*map(str, fit_arguments(features, tmp_path / "a"))]
    written = on_a_terminal(*command, *arguments)
    assert "DPLeastSquares: epsilon = " in written
    for shown in ("mean of the features", "Gram matrix", "inverse of the Gram matrix"):
        assert f"\rDPLeastSquares, {shown}:   0%|" in written
    arguments = [*map(str, fit_arguments(features, tmp_path / "b"))]
    done = subprocess.run(
        [sys.executable, *command, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith("DPLeastSquares: epsilon = ")


@pytest.fixture
def two_ledgers(tmp_path):
    """Return a budget as two programs have it open."""
    path = tmp_path / "x"
    PrivacyLedger(path, dataset="x", epsilon=1.0, delta=1e-5)
    return [PrivacyLedger(path, dataset="x") for _ in range(2)]


def notes_of(error, ledger, body=None):
    def failing():
        with charged_within(ledger):
            if body is not None:
                body()
            raise error

    with pytest.raises(type(error)) as failed:
        failing()
    return getattr(failed.value, "__notes__", [])


def test_a_failure_before_the_charge_says_so(two_ledgers):
    assert notes_of(ValueError("no"), two_ledgers[0]) == ["Nothing was charged."]
    assert notes_of(ValueError("no"), None) == []


def test_a_failure_is_not_called_free_once_anyone_has_charged(two_ledgers):
    """This command perhaps: the ledger alone cannot say whose charge it was."""
    ours, other = two_ledgers
    X, y = np.eye(20, 3), np.arange(20) % 2
    fit = DPLeastSquares(classes=[0, 1], epsilon=0.1, ledger=other).fit
    charge = partial(fit, X, y)
    assert notes_of(ValueError("no"), ours, charge) == []
    told = notes_of(BudgetExceededError("too much"), ours, charge)
    assert told == ["Nothing was charged."]


def test_a_ledger_that_cannot_be_read_any_more_is_to_be_asked(two_ledgers, tmp_path):
    ours, _ = two_ledgers

    def damage():
        (tmp_path / "x").write_bytes(b"damaged")

    assert notes_of(ValueError("no"), ours, damage) == [ASK_LEDGER]
    assert notes_of(ValueError("no"), ours) == []
