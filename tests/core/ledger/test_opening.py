"""Who only reads a ledger changes nothing of it."""

import os
import shutil
from pathlib import Path

import pytest

from privfeat import LedgerError, PrivacyLedger
from privfeat.core.ledger.opening import find_datasets, open_store, read_accounts
from tests.core.ledger.postgres.conftest import run

GOLDEN = Path(__file__).parents[2] / "golden"


def check_accounts(location, fit):
    numbers = {"epsilon": 3.0, "delta": 1e-5}
    ledgers = [PrivacyLedger(location, dataset=d, **numbers) for d in ("a", "b")]
    ledgers[1].charge(fit, estimator="DPFC")
    accounts = read_accounts(location)
    assert [each.budget for each in accounts] == [each.budget for each in ledgers]
    assert [each.charges for each in accounts] == [[], ledgers[1].history]
    assert find_datasets(location) == ["a", "b"]


def test_accounts_of_a_file_hold_every_budget_and_charge(tmp_path, fit):
    check_accounts(tmp_path / "a.ledger", fit)


@pytest.mark.postgres
def test_accounts_of_a_database_hold_every_budget_and_charge(postgres_url, fit):
    run(postgres_url, "CREATE DATABASE of_accounts")
    check_accounts(postgres_url.replace("/postgres?", "/of_accounts?"), fit)


def test_reading_changes_no_file(tmp_path, fit):
    path = tmp_path / "a.ledger"
    PrivacyLedger(path, dataset="a", epsilon=3.0, delta=1e-5)
    os.utime(path, (1, 1))
    path.chmod(0o400)
    before = path.read_bytes()
    assert len(read_accounts(path)) == 1
    assert path.read_bytes() == before
    assert path.stat().st_mtime == 1
    assert os.listdir(tmp_path) == [path.name]


def test_reading_makes_no_file(tmp_path):
    with pytest.raises(LedgerError, match="found no such file"):
        read_accounts(tmp_path / "none")
    assert os.listdir(tmp_path) == []


def test_reading_takes_no_old_file_over(tmp_path):
    path = Path(shutil.copy(GOLDEN / "ledger-v1.sqlite", tmp_path))
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="got one of an older release"):
        read_accounts(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_a_store_for_reading_alone_writes_nothing(tmp_path):
    path = tmp_path / "a.ledger"
    PrivacyLedger(path, dataset="a", epsilon=3.0, delta=1e-5)
    before = path.read_bytes()
    with (
        pytest.raises(LedgerError, match="read without a change"),
        open_store(path, read_only=True).transaction(write=True),
    ):
        pass
    assert path.read_bytes() == before


def test_a_damaged_ledger_has_no_accounts(tmp_path):
    path = tmp_path / "a.ledger"
    PrivacyLedger(path, dataset="a", epsilon=3.0, delta=1e-5)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(LedgerError, match="damaged"):
        read_accounts(path)
