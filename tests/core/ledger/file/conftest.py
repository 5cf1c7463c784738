"""A ledger in a file."""

import pytest

from privfeat import PrivacyLedger
from tests.core.ledgers import make_statement


def make(path, **options):
    return PrivacyLedger(path, dataset="a", epsilon=3.0, delta=1e-5, **options)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "team.ledger"


@pytest.fixture
def small():
    return make_statement(rho=1e-4)
