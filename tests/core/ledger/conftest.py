"""A statement to charge."""

import pytest

from tests.core.ledgers import make_statement


@pytest.fixture
def fit():
    return make_statement(epsilon=0.5)
