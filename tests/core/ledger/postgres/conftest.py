"""An empty database on a PostgreSQL server."""

import itertools

import pytest

from privfeat import PrivacyLedger
from privfeat.core.ledger.stores.postgres_store import _engine


def run(url, *statements):
    """Run statements, each committed at once."""
    from sqlalchemy import text

    engine = _engine(url).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))


_numbers = itertools.count()


@pytest.fixture
def database(postgres_url):
    """Return the URL of an empty database."""
    name = f"empty{next(_numbers)}"
    run(postgres_url, f"CREATE DATABASE {name}")
    return postgres_url.replace("/postgres?", f"/{name}?")


def make(url, dataset="a"):
    return PrivacyLedger(url, dataset=dataset, epsilon=1.5, delta=1e-5)
