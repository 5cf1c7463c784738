"""A ledger in a file that is full, read-only, damaged, or not there."""

import errno
import itertools
import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from privfeat import LedgerError, PrivacyLedger
from privfeat.core.ledger.chained_log import read_log
from privfeat.core.ledger.privacy_ledger import find_datasets
from privfeat.core.ledger.store import BUDGETS, CHARGES
from tests.core.ledgers import (
    CONTEXT,
    charge_as_a_stranger,
    charge_on_a_full_disk,
    charge_until_killed,
    create_until_killed,
    exit_code,
    in_process,
    make_statement,
)


def make(path, **options):
    return PrivacyLedger(path, dataset="a", epsilon=3.0, delta=1e-5, **options)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "team.ledger"


@pytest.fixture
def fit():
    return make_statement(epsilon=0.5)


@pytest.fixture
def small():
    return make_statement(rho=1e-4)


@pytest.fixture
def written(path, fit):
    """Return the bytes of a ledger with three charges, and what they spent."""
    ledger = make(path)
    for _ in range(3):
        ledger.charge(fit, estimator="DPFC")
    assert sorted(os.listdir(path.parent)) == [path.name]
    return path.read_bytes(), ledger.spent


def test_a_missing_file_is_not_made_up(path):
    with pytest.raises(LedgerError, match="must exist, found no such file"):
        PrivacyLedger(path, dataset="a")
    assert not path.exists()


def test_a_file_that_was_deleted_is_not_made_again(path, fit):
    ledger = make(path)
    path.unlink()
    with pytest.raises(LedgerError, match="must exist"):
        ledger.charge(fit, estimator="DPFC")
    make(path)
    with pytest.raises(LedgerError, match="found another in its place"):
        ledger.charge(fit, estimator="DPFC")


def test_a_ledger_keeps_its_place_when_the_folder_changes(
    path, fit, monkeypatch, tmp_path
):
    monkeypatch.chdir(path.parent)
    ledger = make(path.name)
    monkeypatch.chdir("/")
    ledger.charge(fit, estimator="DPFC")
    assert len(make(path).history) == 1


@pytest.mark.parametrize("name", ["a b%20?mode=memory#x.db", "é", ":memory:"])
def test_any_name_of_a_file_will_do(path, fit, name):
    make(path.with_name(name)).charge(fit, estimator="DPFC")
    assert path.with_name(name).exists()


@pytest.mark.parametrize("content", [b"", b"text", b"SQLite format 3\0" + bytes(5000)])
def test_a_file_that_is_no_ledger_is_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="ledger"):
        make(path)
    assert path.read_bytes() == content


def spent_in(path):
    """Return what a ledger says; a LedgerError is an answer, anything else fails."""
    try:
        return PrivacyLedger(path, dataset="a").spent
    except LedgerError as error:
        return error


def test_a_truncated_ledger_is_an_error(written, path):
    content, _ = written
    for length in [0, 1, 100, *range(512, len(content), 512), len(content) - 1]:
        path.write_bytes(content[:length])
        assert isinstance(spent_in(path), LedgerError), length
        with pytest.raises(LedgerError):
            make(path)


def check_damage(written, path, positions):
    """Whatever byte is wrong, nothing else than the truth is ever read."""
    content, spent = written
    for position in positions:
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        said = spent_in(path)
        assert isinstance(said, LedgerError) or said == spent, position


def test_a_damaged_byte_is_noticed(written, path):
    check_damage(written, path, range(0, len(written[0]), 41))


@pytest.mark.slow
def test_every_damaged_byte_is_noticed(written, path):
    check_damage(written, path, range(len(written[0])))


def test_a_lost_page_is_noticed(written, path):
    content, spent = written
    for start in range(0, len(content), 4096):
        path.write_bytes(content[:start] + bytes(4096) + content[start + 4096 :])
        said = spent_in(path)
        assert isinstance(said, LedgerError) or said == spent, start


def run_child(target, *args):
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = in_process(target, *args[:2], sender, *args[2:])
    sender.close()
    answer = receiver.recv()
    process.join()
    return answer


@pytest.mark.parametrize("n_bytes", [0, 1100, 10_000])
def test_a_full_disk_stops_the_fits_and_loses_none(path, small, n_bytes):
    ledger = make(path)
    numbers, error = run_child(charge_on_a_full_disk, ledger, small, n_bytes)
    assert "must be readable and writable, got" in error
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(ledger.history) >= len(numbers)
    assert ledger.charge(small, estimator="Next") == len(ledger.history)


def test_a_full_disk_leaves_no_half_made_ledger(path, tmp_path):
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = in_process(create_on_a_full_disk, str(path), sender)
    sender.close()
    assert "cannot be created" in receiver.recv()
    process.join()
    assert list(tmp_path.iterdir()) == []
    make(path)


def create_on_a_full_disk(path, connection):
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))
    try:
        make(path)
    except LedgerError as error:
        connection.send(str(error))


def test_a_read_only_ledger_stops_the_fits(small):
    folder = Path(tempfile.mkdtemp())  # not below a folder of this user alone
    try:
        path = folder / "team.ledger"
        ledger = make(path)
        path.chmod(0o444)
        folder.chmod(0o555)
        numbers, error = run_child(charge_as_a_stranger, ledger, small)
        assert numbers == []
        assert "must be readable and writable, got" in error
        folder.chmod(0o755)
        path.chmod(0o644)
        assert ledger.charge(small, estimator="Next") == 1
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_creation_killed_at_any_step_leaves_all_or_nothing(tmp_path):
    step, code, made = 0, None, []
    while code != 0:
        path = tmp_path / f"{step}.ledger"
        code = exit_code(create_until_killed, str(path), step)
        assert code in (0, -9)
        made.append(path.exists())
        if path.exists():
            assert find_datasets(path) in ([], ["a"])
        assert make(path).history == []
        step += 1
    assert step > 8
    assert made == sorted(made)
    assert made[0] is False


def test_a_ledger_in_a_folder_that_is_not_there_is_refused(path):
    with pytest.raises(LedgerError, match="cannot be created"):
        make(path.parent / "none" / path.name)
    assert not (path.parent / "none").exists()


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


@pytest.mark.parametrize("n_before", [0, 1])
def test_a_disk_that_fails_to_keep_a_charge_is_an_error(
    path, small, monkeypatch, n_before
):
    """At the line, and at the mark; what is found later may be more, never less."""
    ledger = make(path)
    ledger.charge(small, estimator="DPFC")
    left, genuine = itertools.count(n_before, -1), os.fsync

    def fsync(file):
        genuine(file)
        if next(left) == 0:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(LedgerError, match="Input/output error"):
        ledger.charge(small, estimator="DPFC")
    monkeypatch.undo()
    assert len(ledger.history) == 2
    assert ledger.charge(small, estimator="DPFC") == 3


def test_a_mark_is_written_when_its_line_is_on_disk(path, small, monkeypatch):
    """Else a power cut could keep the mark and lose the line, or lose both."""
    ledger, steps = make(path), []
    genuine = {name: getattr(os, name) for name in ("pwrite", "fsync")}

    def pwrite(file, content, offset):
        steps.append("mark" if offset < 1024 else "line")
        return genuine["pwrite"](file, content[:100], offset)  # the rest is written too

    def fsync(file):
        steps.append("fsync")
        genuine["fsync"](file)

    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr(os, "fsync", fsync)
    ledger.charge(small, estimator="DPFC")
    order = [step for step, _ in itertools.groupby(steps)]
    assert order == ["line", "fsync", "mark", "fsync"]
    monkeypatch.undo()
    assert len(ledger.history) == 1


def test_macos_empties_the_cache_of_its_drive(path, small, monkeypatch):
    import fcntl

    asked = []
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda file, what: asked.append(what))
    make(path).charge(small, estimator="DPFC")
    assert len(asked) > 3
    assert set(asked) == {51}


@pytest.mark.parametrize("n_bytes", [0, 1, 200, 511])
def test_a_process_killed_at_any_call_leaves_every_charge(path, n_bytes):
    """The call that writes gets some bytes through, or none."""
    ledger, step, code, found = make(path), 0, None, []
    while code != 0:
        n_before = len(ledger.history)
        code = exit_code(charge_until_killed, str(path), step, n_bytes)
        assert code in (0, -9)
        found.append(len(ledger.history) - n_before)
        assert ledger.charge(make_statement(rho=1e-4), estimator="Next") > n_before
        step += 1
    assert found == sorted(found)
    assert set(found) == {0, 1}
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("side", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("content", [b"", b"x" * 5000, None])
def test_a_file_beside_a_ledger_is_never_read(written, path, side, content):
    golden = (Path(__file__).parents[2] / "golden" / "ledger-v1.sqlite").read_bytes()
    beside = path.with_name(path.name + side)
    beside.write_bytes(golden if content is None else content)
    before = beside.read_bytes()
    assert spent_in(path) == written[1]
    assert make(path).charge(make_statement(rho=1e-4), estimator="Next") == 4
    assert beside.read_bytes() == before


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


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), np.longdouble("0.1")])
def test_a_budget_is_the_float_next_to_what_was_asked(path, epsilon):
    for _ in range(2):  # made, and found
        ledger = PrivacyLedger(path, dataset="a", epsilon=epsilon, delta=1e-5)
        assert ledger.budget.epsilon == float(epsilon)


def test_a_pipe_is_refused_at_once(path):
    os.mkfifo(path)
    with pytest.raises(LedgerError, match="must be a file"):
        make(path)


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


def test_a_ledger_with_both_marks_damaged_is_no_older_one(path):
    make(path)
    path.write_bytes(path.read_bytes().replace(b"0", b"1"))
    with pytest.raises(LedgerError, match="damaged: it has no readable mark"):
        make(path)


def test_an_error_in_a_transaction_takes_it_back(path, small):
    ledger = make(path)
    before = path.read_bytes()

    def work():
        with ledger._store.transaction(write=True) as rows:
            rows.update(BUDGETS, {"dataset": "a", "epsilon": 7.0})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert path.read_bytes() == before
    assert ledger.charge(small, estimator="DPFC") == 1


def test_a_reader_writes_nothing(path, small):
    ledger = make(path)
    ledger.charge(small, estimator="DPFC")
    path.chmod(0o444)
    before = path.read_bytes()
    assert len(make(path.with_name(path.name)).history) == 1
    assert ledger.spent.epsilon > 0
    assert path.read_bytes() == before


def test_the_file_can_be_read_by_others(written, path):
    """One line for each transaction, each with the rows that it wrote."""
    changes = read_log(written[0], "a").changes
    assert [[kind, table] for kind, table, _ in changes[1]] == [
        ["insert", CHARGES],
        ["update", BUDGETS],
    ]
    lines = written[0][1024:].decode().splitlines()
    assert len(lines) == 4
    assert all(len(line.split(" ", 1)[0]) == 64 for line in lines)


@pytest.mark.parametrize("row", [{"dataset": "a"}, {"dataset": "a", "version": 2}])
def test_a_row_without_its_columns_is_damaged(path, row):
    other = make(path)._store
    with other.transaction(write=True) as rows:
        rows.insert(BUDGETS, {**row, "dataset": "b"})
    with pytest.raises(LedgerError, match=r"damaged|version"):
        PrivacyLedger(path, dataset="b")
    with other.transaction(write=True) as rows:
        rows.insert(CHARGES, {**row, "number": 1})
    with pytest.raises(LedgerError, match="damaged"):
        make(path)
