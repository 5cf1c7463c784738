"""What only a server can do to a ledger; all else is tested in test_ledger."""

import itertools
import sys
import threading
import time

import pytest

from privfeat import BudgetExceededError, LedgerError, PrivacyLedger
from privfeat.core.ledger import postgres_store
from privfeat.core.ledger.postgres_store import PostgresStore, _engine
from privfeat.core.ledger.rows import find_charges
from privfeat.core.ledger.store import BUDGETS, CHARGES
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


def run(url, *statements):
    """Run statements, each committed at once."""
    from sqlalchemy import text

    engine = _engine(url).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))


def as_role(url, role):
    return url.replace("//tester@", f"//{role}@")


_numbers = itertools.count()


@pytest.fixture
def database(postgres_url):
    """Return the URL of an empty database."""
    name = f"empty{next(_numbers)}"
    run(postgres_url, f"CREATE DATABASE {name}")
    return postgres_url.replace("/postgres?", f"/{name}?")


def make(url, dataset="a"):
    return PrivacyLedger(url, dataset=dataset, epsilon=1.5, delta=1e-5)


@pytest.fixture
def fit():
    return make_statement(epsilon=0.5)


@pytest.mark.postgres
def test_an_empty_database_is_no_ledger(database):
    with pytest.raises(LedgerError, match="must exist, found no tables"):
        PrivacyLedger(database, dataset="a")
    make(database)
    assert PrivacyLedger(database, dataset="a").history == []


@pytest.mark.postgres
def test_roles_with_schemas_of_their_own_share_the_ledger(database, fit):
    """Before, each had tables in a schema that its search_path named first."""
    for role in ("alice", "bob"):
        run(
            database,
            f"DROP OWNED BY {role}" if role_exists(database, role) else "SELECT 1",
            f"DROP ROLE IF EXISTS {role}",
            f"CREATE ROLE {role} LOGIN",
            f"CREATE SCHEMA {role} AUTHORIZATION {role}",
        )
    run(database, "CREATE SCHEMA privfeat AUTHORIZATION alice")
    alice = make(as_role(database, "alice"))
    assert alice.charge(fit, estimator="DPFC") == 1
    with pytest.raises(LedgerError, match="permission denied"):
        make(as_role(database, "bob"))
    run(
        database,
        "GRANT USAGE ON SCHEMA privfeat TO bob",
        "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA privfeat TO bob",
    )
    bob = make(as_role(database, "bob"))
    assert bob.charge(fit, estimator="DPFC") == 2
    assert alice.history == bob.history
    assert "schema privfeat" in repr(alice)
    assert repr(alice) == repr(bob)


def role_exists(url, role):
    from sqlalchemy import text

    with _engine(url).connect() as connection:
        found = connection.execute(text(f"SELECT FROM pg_roles WHERE rolname='{role}'"))
        return bool(list(found))


@pytest.mark.postgres
def test_old_tables_are_found_in_any_schema_by_any_search_path(database, fit):
    make(database).charge(fit, estimator="DPFC")
    move = "ALTER TABLE privfeat.privfeat_{} SET SCHEMA {}"
    run(
        database,
        *(move.format(name, "public") for name in ("budget", "charge")),
        "DROP SCHEMA privfeat",
    )
    for path in ("public", "pg_catalog", "nowhere"):
        ledger = PrivacyLedger(f"{database}&options=-csearch_path={path}", dataset="a")
        assert len(ledger.history) == 1
        assert "schema public)" in repr(ledger)
    assert make(database).charge(fit, estimator="DPFC") == 2


@pytest.mark.postgres
def test_tables_in_two_schemas_are_an_error(database, fit):
    ledger = make(database)
    run(
        database, "CREATE SCHEMA bob", "CREATE TABLE bob.privfeat_budget (dataset text)"
    )
    for attempt in (
        lambda: make(database),
        lambda: ledger.history,
        lambda: ledger.charge(fit, estimator="DPFC"),
    ):
        with pytest.raises(LedgerError, match=r"must be in one schema.*bob, privfeat"):
            attempt()
    run(database, "DROP SCHEMA bob CASCADE")
    assert ledger.history == []


@pytest.mark.postgres
def test_a_ledger_that_was_moved_is_an_error(database, fit):
    ledger = make(database)
    run(database, "ALTER SCHEMA privfeat RENAME TO moved")
    with pytest.raises(LedgerError, match=r"found it in.*schema moved"):
        ledger.charge(fit, estimator="DPFC")


CHARGE = "privfeat.privfeat_charge"
SPOILED = {
    "unlogged": ["ALTER TABLE {0} SET UNLOGGED"],
    "view": ["ALTER TABLE {0} RENAME TO b", "CREATE VIEW {0} AS TABLE privfeat.b"],
    "gone": ["DROP TABLE {0}"],
    "rule": ["CREATE RULE r AS ON INSERT TO {0} DO INSTEAD NOTHING"],
    "row security": ["ALTER TABLE {0} ENABLE ROW LEVEL SECURITY"],
    "heir": ["CREATE TABLE public.heir () INHERITS ({0})"],
    "trigger": [
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER t BEFORE INSERT ON {0} FOR EACH ROW EXECUTE FUNCTION f()",
    ],
}


@pytest.mark.postgres
@pytest.mark.parametrize("kind", SPOILED)
def test_tables_that_may_lose_or_hide_a_charge_are_refused(database, fit, kind):
    ledger = make(database)
    ledger.charge(fit, estimator="DPFC")
    run(database, *(statement.format(CHARGE) for statement in SPOILED[kind]))
    with pytest.raises(LedgerError, match="must be in two ordinary tables"):
        ledger.charge(fit, estimator="DPFC")
    with pytest.raises(LedgerError, match="must be in two ordinary tables"):
        make(database)


@pytest.mark.postgres
def test_a_swallowed_insert_is_an_error(database, fit, plant):
    """Even of a rule that the look at the tables came too early for."""
    ledger = make(database)
    run(database, *(statement.format(CHARGE) for statement in SPOILED["trigger"]))
    question = "question to PostgreSQL about tables"
    plant(question, plant.genuine(question).replace("NOT tgisinternal", "false"))
    with pytest.raises(LedgerError, match="damaged: a row is there twice, or not"):
        ledger.charge(fit, estimator="DPFC")
    assert ledger.history == []


@pytest.mark.postgres
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_deleted_row_is_an_error(database, number):
    """The last one too."""
    ledger, fit = make(database), make_statement(rho=1e-4)
    for _ in range(3):
        ledger.charge(fit, estimator="DPFC")
    run(database, f"DELETE FROM {CHARGE} WHERE number = {number}")
    with pytest.raises(LedgerError, match="damaged"):
        _ = ledger.spent
    with pytest.raises(LedgerError, match="damaged"):
        ledger.charge(fit, estimator="DPFC")


@pytest.mark.postgres
def test_a_temporary_table_shadows_nothing(database, fit):
    """Another session's, and one of the role's own search_path."""
    from sqlalchemy import text

    ledger = make(database)
    with _engine(database).connect() as connection:
        connection.execute(text(f"CREATE TEMP TABLE privfeat_charge AS TABLE {CHARGE}"))
        connection.commit()
        assert ledger.charge(fit, estimator="DPFC") == 1
        assert len(make(database).history) == 1


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
