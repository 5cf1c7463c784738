"""Who writes to a ledger file waits for a turn, and gives it back."""

import errno
import os
import shutil
import sys
from contextlib import ExitStack

import pytest

from privfeat import LedgerError
from tests.core.ledger.file.conftest import make


def test_a_file_system_without_locks_is_refused(path, small, monkeypatch):
    import fcntl

    ledger = make(path)

    def refuse(file, kind):
        if kind & fcntl.LOCK_NB:
            raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(LedgerError, match="No locks available"):
        ledger.charge(small, estimator="DPFC")


def test_a_system_without_locks_is_refused(path, small, monkeypatch):
    ledger = make(path)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(LedgerError, match="needs a system with flock"):
        ledger.charge(small, estimator="DPFC")
    path.unlink()
    with pytest.raises(LedgerError, match="needs a system with flock"):
        make(path)
    assert list(path.parent.iterdir()) == []


def test_a_fork_that_goes_on_keeps_no_lock(path, small):
    """The lock belongs to the open file, which a fork has as well."""
    ledger = make(path)
    with ledger._store.transaction(write=True):
        receiver, sender = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(sender)
            os.read(receiver, 1)
            os._exit(0)
    try:
        assert ledger.charge(small, estimator="DPFC") == 1
    finally:
        os.close(sender)
        os.close(receiver)
        os.waitpid(child, 0)


def test_an_interrupt_while_it_is_unlocked_keeps_no_lock(
    path, small, monkeypatch, plant
):
    """Ctrl-C may come at any line; without the lock others would wait in vain."""
    import fcntl

    ledger, flock = make(path), fcntl.flock

    def interrupted(file, kind):
        if kind == fcntl.LOCK_UN:
            raise KeyboardInterrupt
        flock(file, kind)

    monkeypatch.setattr(fcntl, "flock", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ledger.charge(small, estimator="DPFC")
    monkeypatch.undo()
    plant("seconds that a ledger waits", 0)
    assert ledger.charge(small, estimator="DPFC") == 2


def test_a_second_creator_finds_the_ledger_of_the_first(path, fit, monkeypatch):
    """Between its look and its link, another process makes the same ledger."""
    genuine = os.link

    def link(source, target):
        monkeypatch.setattr(os, "link", genuine)
        make(path).charge(fit, estimator="First")
        genuine(source, target)

    monkeypatch.setattr(os, "link", link)
    assert [charge.estimator for charge in make(path).history] == ["First"]
    assert sorted(os.listdir(path.parent)) == [path.name]


def test_a_writer_waits_for_its_turn_but_not_for_good(path, small, plant):
    ledger = make(path)
    plant("seconds that a ledger waits", 0.1)
    for write in (True, False):
        with ledger._store.transaction(write=write):
            with pytest.raises(LedgerError, match="keeps it locked"):
                ledger.charge(small, estimator="DPFC")
    with ledger._store.transaction(write=False):
        assert ledger.history == []  # readers read together
    assert ledger.charge(small, estimator="DPFC") == 1


def test_a_writer_has_its_turn_as_soon_as_the_lock_is_free(path, small, monkeypatch):
    ledger, held = make(path), ExitStack()
    held.enter_context(ledger._store.transaction(write=True))
    monkeypatch.setattr("time.sleep", lambda _: held.close())
    assert ledger.charge(small, estimator="DPFC") == 1


@pytest.mark.parametrize("there", [True, False])
def test_a_file_that_went_while_its_lock_was_waited_for(path, small, plant, there):
    """A charge in a file without a name would be lost: the one at the path counts."""
    ledger, genuine = make(path), plant.genuine("lock of a ledger file")
    copy = shutil.copy(path, path.with_name("copy"))

    def lock(*args):
        genuine(*args)
        plant("lock of a ledger file", genuine)
        os.replace(copy, path) if there else os.unlink(path)

    plant("lock of a ledger file", lock)
    if there:
        assert ledger.charge(small, estimator="DPFC") == 1
        assert len(ledger.history) == 1
        return
    with pytest.raises(LedgerError, match="must exist, found no such file"):
        ledger.charge(small, estimator="DPFC")
