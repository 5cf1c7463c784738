"""A ledger in a file that is full, read-only, damaged, or not there."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from privfeat import LedgerError, PrivacyLedger
from privfeat.core.ledger import find_datasets
from privfeat.core.ledger_store import SQLiteStore
from tests.core.ledgers import (
    CONTEXT,
    charge_as_a_stranger,
    charge_on_a_full_disk,
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


@pytest.mark.parametrize("scheme", ["postgresql+psycopg", "mysql", "file", "sqlite"])
def test_a_url_of_another_kind_is_no_file_and_is_not_shown(scheme, tmp_path):
    with pytest.raises(ValueError, match="got a URL of another kind") as caught:
        make(f"{scheme}://me:secret@host{tmp_path}")
    assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"text", b"SQLite format 3\0" + bytes(5000)])
def test_a_file_that_is_no_ledger_is_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="ledger"):
        make(path)
    assert path.read_bytes() == content


def test_another_database_is_left_alone(path):
    import sqlite3

    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE privfeat_budget (dataset)")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(LedgerError, match="must be a privfeat ledger"):
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


@pytest.mark.parametrize("n_bytes", [0, 60_000])
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

    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
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


def test_a_file_system_without_shared_memory_is_refused(path, monkeypatch):
    """SQLite locks by files here, as it would there, and has no write-ahead log."""
    import sqlite3

    genuine = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda name, **k: genuine(f"{name}&vfs=unix-dotfile", **k)
    )
    with pytest.raises(LedgerError, match="write-ahead log, got journal mode 'delete'"):
        make(path)
    assert list(path.parent.iterdir()) == []


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


def test_a_writer_waits_for_its_turn_but_not_for_good(path, small, monkeypatch):
    ledger = make(path)
    monkeypatch.setattr("privfeat.core.ledger_store.TIMEOUT", 0.1)
    with ledger._store.transaction(write=True):
        assert ledger.history == []  # readers do not wait
        with pytest.raises(LedgerError, match="locked"):
            ledger.charge(small, estimator="DPFC")
    assert ledger.charge(small, estimator="DPFC") == 1


def test_an_error_in_a_transaction_takes_it_back(path, small):
    ledger = make(path)

    def work():
        with SQLiteStore(str(path)).transaction(write=True) as execute:
            execute("DELETE FROM privfeat_budget")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert ledger.charge(small, estimator="DPFC") == 1


def test_the_file_is_a_write_ahead_log_on_disk_at_every_commit(path):
    ledger = make(path)
    with ledger._store.transaction(write=False) as execute:
        assert execute("PRAGMA journal_mode") == [("wal",)]
        assert execute("PRAGMA synchronous") == [(2,)]
