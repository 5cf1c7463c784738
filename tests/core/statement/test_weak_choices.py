"""What a fit is warned of, one choice at a time, and what it is not."""

import math
import warnings
from dataclasses import replace

import pytest

from privfeat.core.statement.weak_choices import is_large_delta, warn_of_weak_choices
from privfeat.exceptions import PrivacyWarning
from tests.core.ledgers import make_statement


def heard(statement, *, classes_read=False, n_units=100):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_weak_choices(statement, classes_read=classes_read, n_units=n_units)
    assert {warning.category for warning in caught} <= {PrivacyWarning}
    assert {warning.filename for warning in caught} <= {__file__}
    return [str(warning.message).partition(" ")[0] for warning in caught]


def test_a_choice_that_is_usual_is_not_warned_of():
    assert heard(make_statement(epsilon=1.0)) == []
    assert heard(make_statement(epsilon=20.0)) == []


@pytest.mark.parametrize(
    ("budget", "options", "name"),
    [
        ({"epsilon": 20.5}, {}, "epsilon"),
        ({"epsilon": 1.0}, {"classes_read": True}, "classes=None"),
        ({"epsilon": 1.0, "seeded": True}, {}, "random_state"),
        ({"epsilon": 1.0, "delta": 1e-3}, {}, "delta"),
        ({"epsilon": 1.0}, {"n_units": 200_000}, "delta"),
    ],
)
def test_each_weak_choice_is_warned_of(budget, options, name):
    assert heard(make_statement(**budget), **options) == [name]


def test_without_privacy_there_is_nothing_more_to_weaken():
    statement = make_statement(epsilon=math.inf, seeded=True)
    assert heard(statement, classes_read=True, n_units=10**9) == ["epsilon"]


@pytest.mark.parametrize(
    ("delta", "n_units", "large"),
    [
        (1e-4, 10_000, False),
        (1e-4, 10_001, True),
        (1.01e-4, 1, True),
        (1e-5, 100_000, False),
        (1e-5, 100_001, True),
    ],
)
def test_delta_is_large_from_one_over_the_number_of_units(delta, n_units, large):
    assert is_large_delta(delta, n_units) == large


def test_delta_is_compared_with_the_number_of_what_is_protected():
    for unit in ("record", "user"):
        statement = replace(make_statement(epsilon=1.0, delta=1e-3), unit=unit)
        with pytest.warns(PrivacyWarning, match=f"over the number of {unit}s"):
            warn_of_weak_choices(statement, classes_read=False, n_units=100)
