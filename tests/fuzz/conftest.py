"""Bad input at every public entry point; how many inputs were tried is printed.

``PRIVFEAT_FUZZ=100`` tries a hundred times as many.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

FACTOR = int(os.environ.get("PRIVFEAT_FUZZ", "1"))
_PROPERTY = "inputs tried"


@pytest.fixture
def tried(record_property):
    """Return a list of what became of each input, one word each, counted at the end."""
    outcomes = []
    yield outcomes
    record_property(
        _PROPERTY, {word: outcomes.count(word) for word in sorted(set(outcomes))}
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


def pytest_terminal_summary(terminalreporter):
    lines = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "teardown":
                continue
            found = dict(report.user_properties).get(_PROPERTY)
            if found is not None:
                words = ", ".join(f"{count} {word}" for word, count in found.items())
                total = sum(found.values())
                lines.append(f"{report.nodeid.split('::')[-1]}: {total} ({words})")
    if lines:
        terminalreporter.section("bad inputs tried")
        for line in sorted(lines):
            terminalreporter.write_line(line)
