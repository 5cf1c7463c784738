"""Bad input at every public entry point; how many inputs were tried is printed.

``PRIVFEAT_FUZZ=100`` tries a hundred times as many.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

TRIED = "inputs tried"
FACTOR = int(os.environ.get("PRIVFEAT_FUZZ", "1"))


@pytest.fixture
def tried(record_property):
    """Return a list of what became of each input, one word each, counted at the end."""
    outcomes = []
    yield outcomes
    record_property(
        TRIED, {word: outcomes.count(word) for word in sorted(set(outcomes))}
    )


@pytest.fixture
def examples():
    """Return settings for so many examples, and more where asked."""

    def of(count):
        slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
        return settings(
            max_examples=count * FACTOR, deadline=None, suppress_health_check=slow
        )

    return of
