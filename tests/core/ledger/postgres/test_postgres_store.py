"""What only a server can do to a ledger; all else is tested in test_ledger."""

import socket
import sys
import threading
import time

import pytest

from privfeat import BudgetExceededError, LedgerError, PrivacyLedger
from privfeat.core.ledger.rows import find_charges
from privfeat.core.ledger.store import BUDGETS, CHARGES
from privfeat.core.ledger.stores import postgres_store
from privfeat.core.ledger.stores.postgres_store import PostgresStore
from tests.core.ledger.postgres.conftest import make, run
from tests.core.ledgers import CONTEXT, in_process, make_statement
from tests.planting import Plant


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


@pytest.mark.slow
@pytest.mark.parametrize("said", ["in the URL", "in the environment"])
def test_a_server_that_accepts_and_says_nothing_is_an_error(monkeypatch, said):
    """A command waited for minutes, without a word."""
    pytest.importorskip("psycopg")
    pytest.importorskip("sqlalchemy")
    asked = "?connect_timeout=2" if said == "in the URL" else ""
    if not asked:
        monkeypatch.setenv("PGCONNECT_TIMEOUT", "2")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(LedgerError, match="timeout expired"):
            PrivacyLedger(f"postgresql://me@{place}/db{asked}", dataset="a")


def test_a_server_that_says_nothing_is_given_up_after_seconds(monkeypatch):
    pytest.importorskip("sqlalchemy")
    monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    engine = postgres_store._engine("postgresql://me@silent.example/db?user=you")
    assert engine.url.query == {"connect_timeout": "20", "user": "you"}


def test_a_url_that_cannot_be_read_is_not_shown():
    pytest.importorskip("sqlalchemy")
    with pytest.raises(LedgerError, match="must have a URL such as") as caught:
        PrivacyLedger("postgresql://me:secret@host:port/db", dataset="a")
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("package", ["sqlalchemy", "psycopg"])
def test_a_missing_package_is_named(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(LedgerError, match=r"pip install 'privfeat\[postgres\]'"):
        PrivacyLedger("postgresql://elsewhere/db", dataset="a")


@pytest.mark.postgres
def test_an_empty_database_is_no_ledger(database):
    with pytest.raises(LedgerError, match="must exist, found no tables"):
        PrivacyLedger(database, dataset="a")
    make(database)
    assert PrivacyLedger(database, dataset="a").history == []


DEFAULTS = [
    "default_transaction_isolation = 'repeatable read'",
    "default_transaction_isolation = 'serializable'",
    "default_transaction_read_only = on",
    "search_path = nowhere",
]


@pytest.mark.postgres
@pytest.mark.parametrize("default", DEFAULTS)
def test_concurrent_charges_succeed_whatever_the_server_does_by_default(
    database, default
):
    """48 charges at once, of which 30 fit: no other reason to refuse one."""
    ledger = make(database)
    fit = make_statement(rho=ledger.remaining.rho / 30)
    name = ledger._store._place.split()[1].rstrip(",")
    run(
        database.replace(f"/{name}?", "/postgres?"),
        f"ALTER DATABASE {name} SET {default}",
    )
    answers, start = [], threading.Barrier(12)

    def work():
        start.wait()
        for _ in range(4):
            try:
                answers.append(ledger.charge(fit, estimator="DPFC"))
            except BudgetExceededError:
                answers.append(None)

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    granted = sorted(number for number in answers if number is not None)
    assert len(answers) == 48
    assert granted == list(range(1, 31)) == [c.number for c in ledger.history]


@pytest.mark.postgres
def test_a_reader_sees_one_moment(database, fit):
    """Its budget and its charges are of one moment, or they would not match."""
    ledger = make(database)
    with ledger._store.transaction(write=False) as rows:
        assert rows.select(CHARGES, "a") == []
        ledger.charge(fit, estimator="DPFC")
        assert rows.select(CHARGES, "a") == []
        assert find_charges(rows, ledger.budget) == []


@pytest.mark.postgres
@pytest.mark.parametrize("state", [(True, "on"), (False, "off")])
def test_a_standby_or_a_server_without_fsync_is_refused(database, fit, state, plant):
    ledger = make(database)
    with plant.context() as patch:
        patch(
            "question to PostgreSQL about itself",
            f"SELECT {state[0]}, '{state[1]}'::text",
        )
        with pytest.raises(LedgerError, match="primary server that has fsync on"):
            ledger.charge(fit, estimator="DPFC")
    assert ledger.history == []


@pytest.mark.postgres
def test_a_reader_cannot_write(database):
    ledger = make(database)
    with (
        pytest.raises(LedgerError, match="read-only transaction"),
        ledger._store.transaction(write=False) as rows,
    ):
        rows.update(BUDGETS, {"dataset": "a", "epsilon": 2.0})


def hold_the_lock(url, connection):
    """Hang, with a limit that the server enforces after a second."""
    Plant()("seconds that a ledger waits", 1)
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
def test_a_writer_gives_up_in_the_end(postgres_url, plant):
    ledger = PrivacyLedger(postgres_url, dataset="busy", epsilon=1.0, delta=1e-5)
    with ledger._store.transaction(write=True):
        plant("seconds that a ledger waits", 1)
        with pytest.raises(LedgerError, match="lock timeout"):
            ledger.charge(make_statement(epsilon=0.1), estimator="DPFC")
    assert ledger.history == []


@pytest.mark.postgres
def test_a_commit_is_on_disk_whatever_the_server_says(postgres_url):
    with PostgresStore(postgres_url)._connected(write=False) as execute:
        assert execute("SHOW synchronous_commit") == [("on",)]
        assert execute(postgres_store._STATE) == [(False, "on")]


@pytest.mark.postgres
@pytest.mark.parametrize(
    "setting", ["extra_float_digits = -15", "client_encoding = 'SQL_ASCII'"]
)
def test_a_ledger_is_read_whatever_numbers_and_words_the_server_has(database, setting):
    """Rounded numbers passed for a damaged ledger."""
    made = PrivacyLedger(database, dataset="Bern", epsilon=3.3, delta=1.1e-5)
    name = database.partition("?")[0].rpartition("/")[2]
    run(database, f"ALTER DATABASE {name} SET {setting}")
    ledger = PrivacyLedger(database, dataset="Bern")
    assert ledger.charge(make_statement(epsilon=0.1), estimator="DPFC") == 1
    assert ledger.budget == made.budget


@pytest.mark.postgres
def test_a_writer_keeps_its_lock_whatever_the_url_says(database):
    """With autocommit the lock ended before the charge was written."""
    from sqlalchemy import text

    make(database)
    store = postgres_store.PostgresStore(f"{database}&autocommit=true")
    locks = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
    with (
        store.transaction(write=True),
        postgres_store._engine(database).connect() as other,
    ):
        assert other.execute(locks).scalar_one() == 1
