"""A ledger of an older release, as a file of SQLite."""

import hashlib
import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from privfeat import LedgerError, PrivacyLedger
from tests.core.ledgers import make_statement

GOLDEN = Path(__file__).parents[3] / "golden" / "ledger-v1.sqlite"


@pytest.fixture
def path(tmp_path):
    """Return an old ledger of two charges, with nothing beside it."""
    return Path(shutil.copy(GOLDEN, tmp_path / "old.ledger"))


def old_charge(opened, number):
    """Charge as older releases did."""
    (uid,) = opened.execute("SELECT uid FROM privfeat_budget").fetchone()
    fields = (number, "Old", "2026", make_statement(rho=1e-4).to_json(), None)
    sha256 = hashlib.sha256(json.dumps([uid, *fields]).encode()).hexdigest()
    opened.execute(
        "INSERT INTO privfeat_charge VALUES ('a', ?, ?, ?, ?, ?, ?, NULL)",
        (*fields, sha256),
    )


@pytest.fixture
def killed(path, tmp_path):
    """Return an old ledger of four charges, two of which are in its log alone.

    The last change in the log is of one page.
    """
    folder = tmp_path / "killed"
    folder.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        opened.execute("PRAGMA wal_autocheckpoint=0")
        for number in (3, 4):
            old_charge(opened, number)
        opened.execute("UPDATE privfeat_charge SET fitted = '2026' WHERE number = 4")
        for name in os.listdir(tmp_path):
            if name.startswith(path.name):
                shutil.copy(tmp_path / name, folder)
    return folder / path.name


def beside(path, side):
    return path.with_name(path.name + side)


def n_charges(path):
    """Return how many charges there are, or None for an error."""
    try:
        return len(PrivacyLedger(path, dataset="a").history)
    except LedgerError:
        return None
