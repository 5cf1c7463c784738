"""Ledgers: damaged files, other formats, odd places, names and budgets."""

import contextlib
import json
import os
import sqlite3
import tarfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfeat import LedgerError, PrivacyLedger
from privfeat.core.ledger.opening import find_datasets
from tests.core.ledgers import make_statement
from tests.fuzz.damage import damaged
from tests.fuzz.test_estimators import odd

SECRET = "s3cretword"  # stands in URLs as the password


@pytest.fixture
def path(tmp_path):
    return tmp_path / "team.ledger"


def opened(path):
    """Return what a ledger says: spent, charges; None if it is refused."""
    try:
        ledger = PrivacyLedger(path, dataset="a")
        return ledger.spent, len(ledger.history)
    except LedgerError:
        return None


def test_a_damaged_ledger_is_refused_or_says_the_same(path, tried, examples):
    """Several bytes at once, or cut off: never less than was spent."""
    ledger = PrivacyLedger(path, dataset="a", epsilon=3.0, delta=1e-5)
    for _ in range(3):
        ledger.charge(make_statement(epsilon=0.5), estimator="DPFC")
    expected, content = (ledger.spent, 3), path.read_bytes()

    @examples(60)
    @given(data=st.data())
    def attempt(data):
        for log in path.parent.glob(f"{path.name}-*"):
            log.unlink()  # of the ledger before
        path.write_bytes(damaged(content, data.draw))
        found = opened(path)
        assert found in (None, expected)
        with contextlib.suppress(LedgerError):
            ledger.charge(make_statement(epsilon=0.5), estimator="DPFC")
            assert opened(path)[1] == 4
        tried.append("refused" if found is None else "read")

    attempt()


def write_database(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def write_tar(path):
    with tarfile.open(path, "w"):
        pass


FORMATS = {
    "empty": lambda path: path.write_bytes(b""),
    "json": lambda path: path.write_text(json.dumps({"epsilon": 3})),
    "npz": lambda path: np.savez(path.open("wb"), a=np.arange(3)),
    "tar": write_tar,
    "folder": lambda path: path.mkdir(),
    "database": lambda path: write_database(path, "CREATE TABLE a (b)"),
    "with our mark": lambda path: write_database(
        path, "PRAGMA application_id=1885758564", "CREATE TABLE a (b)"
    ),
    "with our tables": lambda path: write_database(
        path,
        "PRAGMA application_id=1885758564",
        "CREATE TABLE privfeat_budget (dataset)",
        "INSERT INTO privfeat_budget VALUES (x'ff')",
    ),
    "pipe": lambda path: os.symlink(path, path),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("kind", FORMATS)
def test_another_format_is_refused_and_left_alone(path, kind):
    FORMATS[kind](path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(LedgerError):
        PrivacyLedger(path, dataset="a")
    with pytest.raises(LedgerError):
        PrivacyLedger(path, dataset="a", epsilon=3.0, delta=1e-5)
    assert before is None or path.read_bytes() == before


words = st.text(max_size=8)
urls = st.tuples(
    st.sampled_from(["postgresql://", "postgresql:", "postgres://", "postgresql+x://"]),
    st.sampled_from(["", f"user:{SECRET}@", f"{SECRET}@", f"u:?{SECRET}?/@"]),
    st.one_of(words, st.sampled_from(["127.0.0.1:1", "127.0.0.1:x", "[::1", "%00"])),
    st.one_of(words, st.sampled_from(["/a", "/a?b=c", f"/?password={SECRET}"])),
).map("".join)


def test_a_url_is_refused_without_its_password(tried, examples, monkeypatch):
    """No server answers at any of them."""
    pytest.importorskip("psycopg")
    pytest.importorskip("sqlalchemy")
    monkeypatch.setenv("PGHOST", "127.0.0.1")
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "2")

    @examples(25)
    @given(url=urls)
    def attempt(url):
        with pytest.raises((LedgerError, ValueError)) as caught:
            find_datasets(url)
        assert caught.type in (LedgerError, ValueError)  # no subclass, as of Unicode
        assert SECRET not in str(caught.value)
        tried.append("refused")

    attempt()


places = st.one_of(words, st.sampled_from(["", ".", "/", "\0", "a\0b", "~", "\ud800"]))


def mostly(good):
    """Three times in four; else anything."""
    return st.integers(0, 3).flatmap(lambda chance: good if chance else odd)


def test_a_ledger_of_any_name_and_budget_is_refused_or_opened_again(
    tmp_path, tried, examples, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    names = st.one_of(words, st.text(min_size=190, max_size=210))

    @examples(80)
    @given(
        place=mostly(places),
        dataset=mostly(names),
        epsilon=mostly(st.just(1.0)),
        delta=mostly(st.just(1e-5)),
    )
    def attempt(place, dataset, epsilon, delta):
        try:
            made = PrivacyLedger(place, dataset=dataset, epsilon=epsilon, delta=delta)
        except (TypeError, ValueError, LedgerError):
            tried.append("refused")
            return
        assert 0.0 < made.budget.epsilon < np.inf
        assert PrivacyLedger(place, dataset=dataset).budget == made.budget
        assert made.remaining.epsilon == made.budget.epsilon
        tried.append("opened")

    attempt()
    assert set(tried) == {"opened", "refused"}
