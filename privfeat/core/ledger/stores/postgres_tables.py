"""The tables of a ledger in a PostgreSQL database: where they are, and their rows."""

from collections.abc import Callable
from typing import Any

from privfeat.core.ledger.store import KEYS, Row, damaged
from privfeat.exceptions import LedgerError

# Runs one statement with named parameters and returns its rows.
Execute = Callable[..., list[Any]]

_NEW_SCHEMA = "privfeat"
_TABLES = (
    """CREATE TABLE {schema}.privfeat_budget (
        dataset TEXT NOT NULL PRIMARY KEY,
        version INTEGER NOT NULL,
        uid TEXT NOT NULL,
        epsilon DOUBLE PRECISION NOT NULL,
        delta DOUBLE PRECISION NOT NULL,
        adjacency TEXT NOT NULL,
        unit TEXT NOT NULL,
        created TEXT NOT NULL,
        sha256 TEXT NOT NULL
    )""",
    """CREATE TABLE {schema}.privfeat_charge (
        dataset TEXT NOT NULL REFERENCES {schema}.privfeat_budget,
        number INTEGER NOT NULL,
        estimator TEXT NOT NULL,
        asked TEXT NOT NULL,
        statement TEXT NOT NULL,
        event TEXT,
        sha256 TEXT NOT NULL,
        fitted TEXT,
        PRIMARY KEY (dataset, number)
    )""",
)
# Everything of these names in the database, for all users alike, and whether it is a
# table that keeps every row, and shows it to all who may read it.
_FIND = """
    SELECT s.nspname, c.relname, c.relkind = 'r' AND c.relpersistence = 'p'
        AND NOT c.relrowsecurity
        AND NOT EXISTS (SELECT FROM pg_rewrite WHERE ev_class = c.oid)
        AND NOT EXISTS (
            SELECT FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal
        )
        AND NOT EXISTS (SELECT FROM pg_inherits WHERE c.oid IN (inhparent, inhrelid))
    FROM pg_class c
    JOIN pg_namespace s ON s.oid = c.relnamespace
    WHERE c.relname IN ('privfeat_budget', 'privfeat_charge')
        AND c.relpersistence <> 't'
    ORDER BY s.nspname, c.relname"""


def create_tables(execute: Execute) -> None:
    """Make the tables in a schema that only they are in."""
    # PostgreSQL asks for more rights to make a schema than to find it.
    if not execute(f"SELECT FROM pg_namespace WHERE nspname = '{_NEW_SCHEMA}'"):
        execute(f"CREATE SCHEMA {_NEW_SCHEMA}")
    for statement in _TABLES:
        execute(statement.format(schema=_NEW_SCHEMA))


def find_schema(execute: Execute, name: str) -> str | None:
    """Return the schema that has the tables, or None; ``name`` is for errors."""
    found = execute(_FIND)
    schemas = sorted({schema for schema, _, _ in found})
    if not found:
        return None
    if len(schemas) > 1:
        raise LedgerError(
            f"ledger {name} must be in one schema, found tables in "
            f"{', '.join(schemas)}. Each may hold charges: rename those that no fit "
            "was charged to, or give each ledger a database."
        )
    if len(found) != len(KEYS) or not all(kept for _, _, kept in found):
        raise LedgerError(
            f"ledger {name} must be in two ordinary tables without triggers, rules, row"
            f" security or heirs, found others in schema {schemas[0]}. Bring back the "
            "tables that privfeat made."
        )
    return str(schemas[0])


class TableRows:
    """The tables of a ledger, in one transaction; see `Transaction`."""

    def __init__(self, execute: Execute, schema: str, name: str) -> None:
        self._execute, self._schema, self._name = execute, schema, name

    def select(self, table: str, dataset: str | None = None) -> list[Row]:
        """See `Transaction`."""
        sql = f"SELECT * FROM {self._schema}.{table}"
        if dataset is not None:
            sql += " WHERE dataset = :dataset"
        return [dict(row._mapping) for row in self._execute(sql, dataset=dataset)]

    def insert(self, table: str, row: Row) -> None:
        """See `Transaction`."""
        columns, values = ", ".join(row), ", ".join(f":{name}" for name in row)
        self._write(
            f"INSERT INTO {self._schema}.{table} ({columns})"
            f" VALUES ({values}) RETURNING 1",
            row,
        )

    def update(self, table: str, row: Row) -> None:
        """See `Transaction`."""
        changes = ", ".join(
            f"{name} = :{name}" for name in row if name not in KEYS[table]
        )
        key = " AND ".join(f"{name} = :{name}" for name in KEYS[table])
        self._write(
            f"UPDATE {self._schema}.{table} SET {changes} WHERE {key} RETURNING 1", row
        )

    def _write(self, sql: str, row: Row) -> None:
        if self._execute(sql, **row) != [(1,)]:
            raise damaged(self._name, "a row is there twice, or not at all")
