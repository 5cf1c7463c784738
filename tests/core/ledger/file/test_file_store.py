"""A ledger in a file that is damaged, of an odd kind, or not there."""

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from privfeat import LedgerError, PrivacyLedger
from privfeat.core.ledger.store import BUDGETS, CHARGES
from privfeat.core.ledger.stores.chained_log import read_log
from privfeat.core.ledger.stores.file_store import FileStore
from tests.core.ledger.file.conftest import make
from tests.core.ledgers import make_statement


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


def test_a_store_that_only_reads_reads_and_does_not_write(path):
    make(path)
    before = path.read_bytes()
    reader = FileStore(str(path), read_only=True)
    with reader.transaction(write=False) as found:
        assert len(found.select(BUDGETS)) == 1
    with (
        pytest.raises(LedgerError, match="to be read without a change"),
        reader.transaction(write=True),
    ):
        pytest.fail("the body must not run")
    assert path.read_bytes() == before
    with FileStore(str(path)).transaction(write=True):  # by default it may
        pass


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


def test_a_ledger_in_a_folder_that_is_not_there_is_refused(path):
    with pytest.raises(LedgerError, match="cannot be created"):
        make(path.parent / "none" / path.name)
    assert not (path.parent / "none").exists()


@pytest.mark.parametrize("side", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("content", [b"", b"x" * 5000, None])
def test_a_file_beside_a_ledger_is_never_read(written, path, side, content):
    golden = (Path(__file__).parents[3] / "golden" / "ledger-v1.sqlite").read_bytes()
    beside = path.with_name(path.name + side)
    beside.write_bytes(golden if content is None else content)
    before = beside.read_bytes()
    assert spent_in(path) == written[1]
    assert make(path).charge(make_statement(rho=1e-4), estimator="Next") == 4
    assert beside.read_bytes() == before


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), np.longdouble("0.1")])
def test_a_budget_is_the_float_next_to_what_was_asked(path, epsilon):
    for _ in range(2):  # made, and found
        ledger = PrivacyLedger(path, dataset="a", epsilon=epsilon, delta=1e-5)
        assert ledger.budget.epsilon == float(epsilon)


def test_a_pipe_is_refused_at_once(path):
    os.mkfifo(path)
    with pytest.raises(LedgerError, match="must be a file"):
        make(path)


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
