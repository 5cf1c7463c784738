"""A ledger in a PostgreSQL database, through SQLAlchemy and psycopg."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from privfeat.core.ledger_store import TIMEOUT, Execute
from privfeat.exceptions import LedgerError

_LOCK = 0x70664C64  # one for all writers to the database


class PostgresStore:
    """A PostgreSQL database, through SQLAlchemy and psycopg: for several hosts."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __str__(self) -> str:
        # Without user and query, which may hold a password: errors are printed.
        from sqlalchemy import URL

        url = _engine(self._url).url
        place = URL.create("postgresql", None, None, url.host, url.port, url.database)
        return place.render_as_string()

    def create(self, schema: Sequence[str]) -> None:
        """Make the tables in one transaction; PostgreSQL takes all of it or nothing."""
        with self.transaction(write=True) as execute:
            if execute("SELECT to_regclass('privfeat_budget')") == [(None,)]:
                for statement in schema:
                    execute(statement)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Execute]:
        """Run the body in one transaction; see `Store`."""
        engine = _engine(self._url)
        from sqlalchemy import text
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with engine.begin() as connection:

                def execute(sql: str, **values: Any) -> list[tuple[Any, ...]]:
                    result = connection.execute(text(sql), values)
                    return [tuple(row) for row in result] if result.returns_rows else []

                # Durable whatever the server's default; and a host that vanishes
                # without a word does not keep the lock.
                execute("SET LOCAL synchronous_commit = on")
                execute(f"SET LOCAL lock_timeout = '{TIMEOUT}s'")
                execute(f"SET LOCAL idle_in_transaction_session_timeout='{TIMEOUT}s'")
                if write:
                    execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
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
    return create_engine(target, poolclass=NullPool)
