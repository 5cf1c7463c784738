"""The tables of a ledger on a PostgreSQL server."""

import pytest

from privfeat import LedgerError, PrivacyLedger
from privfeat.core.ledger.stores.postgres_store import _engine
from tests.core.ledger.postgres.conftest import make, run
from tests.core.ledgers import make_statement


def as_role(url, role):
    return url.replace("//tester@", f"//{role}@")


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
