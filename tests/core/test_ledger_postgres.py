"""What only a server can do to a ledger; all else is tested in test_ledger."""

import sys
import time

import pytest

from privfeat import LedgerError, PrivacyLedger
from privfeat.core.ledger_postgres import PostgresStore, _engine
from tests.core.ledgers import CONTEXT, in_process, make_statement


def test_a_password_is_never_shown():
    store = PostgresStore("postgresql://me:secret@host.example/db?user=you")
    assert str(store) == "postgresql://host.example/db"
    assert "secret" not in str(PostgresStore("postgresql://host/db?password=secret"))


def test_a_server_that_does_not_answer_is_an_error():
    pytest.importorskip("sqlalchemy")
    url = "postgresql://me:secret@/db?host=/nowhere"
    with pytest.raises(LedgerError, match="must be readable and writable") as caught:
        PrivacyLedger(url, dataset="a")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("package", ["sqlalchemy", "psycopg"])
def test_a_missing_package_is_named(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(LedgerError, match=r"pip install 'privfeat\[postgres\]'"):
        PrivacyLedger("postgresql://elsewhere/db", dataset="a")


@pytest.mark.postgres
def test_an_empty_database_is_no_ledger(postgres_url):
    from sqlalchemy import text

    engine = _engine(postgres_url).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("CREATE DATABASE empty"))
    url = postgres_url.replace("/postgres?", "/empty?")
    with pytest.raises(LedgerError, match="does not exist"):
        PrivacyLedger(url, dataset="a")
    PrivacyLedger(url, dataset="a", epsilon=1.0, delta=1e-5)
    assert PrivacyLedger(url, dataset="a").history == []


def hold_the_lock(url, connection):
    """Hang, with a limit that the server enforces after a second."""
    from privfeat.core import ledger_postgres

    ledger_postgres.TIMEOUT = 1
    with PostgresStore(url).transaction(write=True):
        connection.send("held")
        time.sleep(600)


@pytest.mark.postgres
def test_a_client_that_hangs_does_not_keep_the_lock(postgres_url):
    ledger = PrivacyLedger(postgres_url, dataset="hanging", epsilon=1.0, delta=1e-5)
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = in_process(hold_the_lock, postgres_url, sender)
    assert receiver.recv() == "held"
    assert ledger.charge(make_statement(epsilon=0.1), estimator="DPFC") == 1
    process.kill()
    process.join()


@pytest.mark.postgres
def test_a_writer_gives_up_in_the_end(postgres_url, monkeypatch):
    ledger = PrivacyLedger(postgres_url, dataset="busy", epsilon=1.0, delta=1e-5)
    with ledger._store.transaction(write=True):
        monkeypatch.setattr("privfeat.core.ledger_postgres.TIMEOUT", 1)
        with pytest.raises(LedgerError, match="lock timeout"):
            ledger.charge(make_statement(epsilon=0.1), estimator="DPFC")
    assert ledger.history == []


@pytest.mark.postgres
def test_a_commit_is_on_disk_whatever_the_server_says(postgres_url):
    with PostgresStore(postgres_url).transaction(write=False) as execute:
        assert execute("SHOW synchronous_commit") == [("on",)]
