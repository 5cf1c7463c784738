"""One ledger under several names: hard links, symbolic links, bind mounts."""

import os
import subprocess
from contextlib import contextmanager

import pytest

from privfeat import LedgerError, PrivacyLedger
from tests.core.ledgers import (
    CONTEXT,
    charge_and_tell,
    charge_until_killed,
    exit_code,
    in_process,
    make_statement,
)

KINDS = ["same", "symbolic link", "hard link", "bind mount"]


@contextmanager
def second_name(path, other, kind):
    """Give the file another name for as long as the context lasts."""
    if kind == "symbolic link":
        os.symlink(path, other)
    elif kind == "hard link":
        os.link(path, other)
    elif kind == "bind mount":
        other.touch()
        mount = ["mount", "--bind", str(path), str(other)]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"this user may not mount a file: {done.stderr.strip()}")
    try:
        yield path if kind == "same" else other
    finally:
        if kind == "bind mount":
            subprocess.run(["umount", str(other)], check=True)


@pytest.fixture(params=KINDS)
def names(request, tmp_path):
    """Return two names of a new ledger, in two folders."""
    path, other = tmp_path / "one" / "a.ledger", tmp_path / "two" / "b.ledger"
    path.parent.mkdir()
    other.parent.mkdir()
    PrivacyLedger(path, dataset="a", epsilon=1.5, delta=1e-5)
    with second_name(path, other, request.param) as name:
        yield path, name


def test_processes_under_two_names_never_exceed_the_budget(names):
    """Each of the four asks for more than fits; what was granted is what is kept."""
    fit = make_statement(epsilon=0.5)
    ends, processes = [], []
    for name in (*names, *names):
        receiver, sender = CONTEXT.Pipe(duplex=False)
        processes.append(in_process(charge_and_tell, str(name), fit, 6, sender))
        sender.close()
        ends.append(receiver)
    granted = sorted(number for end in ends for number in end.recv())
    for process in processes:
        process.join()
    for name in names:
        ledger = PrivacyLedger(name, dataset="a")
        assert [charge.number for charge in ledger.history] == granted
        assert ledger.spent.epsilon <= 1.5
        assert ledger.remaining.epsilon < 0.5
        assert os.listdir(name.parent) == [name.name]
    assert granted == list(range(1, len(granted) + 1))
    assert len(granted) > 3


@pytest.mark.slow
def test_a_kill_under_one_name_loses_nothing_under_the_other(names):
    """Killed at each step, under one name and then the other; and then it goes on."""
    first, second = names
    fit, step, code = make_statement(rho=1e-4), 0, None
    while code != 0:
        n_before = len(PrivacyLedger(second, dataset="a").history)
        code = exit_code(charge_until_killed, str(first), step, 300)
        assert code in (0, -9)
        ledger = PrivacyLedger(second, dataset="a")
        n_after = len(ledger.history)
        assert n_after in (n_before, n_before + 1)
        assert ledger.charge(fit, estimator="Next") == n_after + 1
        assert len(PrivacyLedger(first, dataset="a").history) == n_after + 1
        step += 1
        first, second = second, first
    assert step > 6


def test_a_name_taken_by_another_ledger_while_a_writer_waits_is_noticed(
    tmp_path, monkeypatch
):
    path, other = tmp_path / "a", tmp_path / "b"
    ledger = PrivacyLedger(path, dataset="a", epsilon=3.0, delta=1e-5)
    PrivacyLedger(other, dataset="a", epsilon=3.0, delta=1e-5)
    import fcntl

    genuine = fcntl.flock

    def flock(file, kind):
        genuine(file, kind)
        if kind & fcntl.LOCK_EX and other.exists():
            os.replace(other, path)

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(LedgerError, match="found another in its place"):
        ledger.charge(make_statement(rho=1e-4), estimator="DPFC")


def test_a_name_that_goes_while_a_writer_waits_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "a"
    ledger = PrivacyLedger(path, dataset="a", epsilon=3.0, delta=1e-5)
    import fcntl

    genuine = fcntl.flock

    def flock(file, kind):
        genuine(file, kind)
        if kind & fcntl.LOCK_EX:
            path.unlink()

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(LedgerError, match="must exist"):
        ledger.charge(make_statement(rho=1e-4), estimator="DPFC")
