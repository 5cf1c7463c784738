"""A ledger in a PostgreSQL database, through SQLAlchemy and psycopg."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from privfeat.core.ledger import store
from privfeat.core.ledger.store import Transaction
from privfeat.core.ledger.stores.postgres_tables import (
    Execute,
    TableRows,
    create_tables,
    find_schema,
)
from privfeat.exceptions import LedgerError

_CONNECT_SECONDS = 20  # for a host that accepts and then says nothing
_LOCK = 0x70664C64  # one for all writers to the database
_STATE = "SELECT pg_is_in_recovery(), current_setting('fsync')"


class PostgresStore:
    """A PostgreSQL database, for several hosts.

    A database holds one ledger, in the one schema that has its tables ("privfeat" if
    this release made it), whatever the ``search_path`` of a role. It is an error to
    have tables in two schemas, a standby, a server without ``fsync``, or tables that
    may lose or hide rows: temporary, unlogged, inherited, views, or with triggers,
    rules or row security.

    After failover to a standby that was not synchronous the last charges may be gone:
    compare them with the fits that were made.

    A writer takes the lock and only then, in READ COMMITTED, reads what is committed,
    so it sees every charge before it. A reader sees one moment, by REPEATABLE READ.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._place = ""  # database and schema, once they are known

    def __str__(self) -> str:
        # Without user and query, which may hold a password: errors are printed.
        from sqlalchemy import URL

        url = _engine(self._url).url
        place = URL.create("postgresql", None, None, url.host, url.port, url.database)
        return place.render_as_string() + self._place

    def create(self) -> None:
        """Make the tables in one transaction; PostgreSQL takes all of it or nothing."""
        with self._connected(write=True) as execute:
            if find_schema(execute, str(self)) is None:
                create_tables(execute)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Run the body in one transaction; see `Store`."""
        with self._connected(write) as execute:
            schema = find_schema(execute, str(self))
            if schema is None:
                raise LedgerError(
                    f"ledger {self} must exist, found no tables of one. Create it with "
                    "`privfeat budget create`, or pass epsilon and delta to "
                    "PrivacyLedger."
                )
            ((database, quoted),) = execute(
                "SELECT current_database(), quote_ident(:schema)", schema=schema
            )
            place = f" (database {database}, schema {schema})"
            if self._place not in ("", place):
                raise LedgerError(
                    f"ledger {self} must be where it was opened, found it in{place}."
                )
            self._place = place
            yield TableRows(execute, quoted, str(self))

    @contextmanager
    def _connected(self, write: bool) -> Iterator[Execute]:
        """Yield what runs a statement, in a transaction that is as safe as it gets."""
        engine = _engine(self._url)
        from sqlalchemy import text
        from sqlalchemy.exc import SQLAlchemyError

        wait = f"{store.TIMEOUT}s"
        level = "READ COMMITTED, READ WRITE" if write else "REPEATABLE READ, READ ONLY"
        try:
            with engine.begin() as connection:

                def execute(sql: str, **values: Any) -> list[Any]:
                    result = connection.execute(text(sql), values)
                    return list(result) if result.returns_rows else []

                # Whatever the server, the role or the URL would have instead.
                execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
                execute("SET LOCAL search_path = pg_catalog, pg_temp")
                execute("SET LOCAL extra_float_digits = 3")  # numbers as they are
                execute("SET LOCAL synchronous_commit = on")
                execute("SET LOCAL row_security = off")  # an error, never fewer rows
                # A host that vanishes does not keep the lock.
                execute(f"SET LOCAL lock_timeout = '{wait}'")
                execute(f"SET LOCAL idle_in_transaction_session_timeout = '{wait}'")
                if write:
                    execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
                if execute(_STATE) != [(False, "on")]:
                    raise LedgerError(
                        f"ledger {self} must be on a primary server that has fsync on, "
                        "got a standby or one without."
                    )
                yield execute
        # Python encodes names of hosts, and may find that they are none.
        except (SQLAlchemyError, UnicodeError) as error:
            reason = str(getattr(error, "orig", error)).partition("\n")[0]
            raise LedgerError(
                f"ledger {self} must be readable and writable, got: {reason}."
            ) from error


@lru_cache
def _engine(url: str) -> Any:
    """Return an engine that keeps no connection open, so that processes may fork."""
    try:
        import psycopg  # noqa: F401
        from sqlalchemy import create_engine, make_url
        from sqlalchemy.exc import ArgumentError
        from sqlalchemy.pool import NullPool
    except ImportError as error:
        raise LedgerError(
            "a ledger on PostgreSQL needs SQLAlchemy and psycopg. Run pip install "
            "'privfeat[postgres]'."
        ) from error
    try:
        target = make_url(url).set(drivername="postgresql+psycopg")
    except (ArgumentError, ValueError):  # not chained: it may hold a password
        raise LedgerError(
            "a ledger on PostgreSQL must have a URL such as postgresql://host/database,"
            " got one that cannot be read."
        ) from None
    if "PGCONNECT_TIMEOUT" not in os.environ:  # else libpq's own way to set it
        waits = {"connect_timeout": str(_CONNECT_SECONDS), **target.query}
        target = target.set(query=waits)
    # whatever the server, the role or the URL would have
    fixed = {"client_encoding": "utf8", "autocommit": False}
    return create_engine(target, poolclass=NullPool, connect_args=fixed)
