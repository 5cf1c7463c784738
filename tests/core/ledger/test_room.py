"""What a ledger says of a fit for which there is no room, or of another unit."""

import math

import pytest

from privfeat import BudgetExceededError
from privfeat.core.ledger.budget import check_covered, spent_of
from privfeat.core.ledger.room import exceeded
from tests.core.ledger.test_budget import DELTA, make_budget
from tests.core.ledgers import make_statement


def said(budget, spent, statement):
    total = spent_of(budget, [*spent, statement]).epsilon
    return str(exceeded(budget, spent, statement, total))


def test_what_is_left_is_told_as_rho_too():
    told = said(make_budget(1.0), [], make_statement(epsilon=2.0))
    assert "may have epsilon = 1 at that delta, or rho = 0." in told


@pytest.mark.parametrize(
    ("delta", "more"), [(1e-4, True), (DELTA, False), (1e-6, False)]
)
def test_a_larger_delta_than_that_of_the_budget_is_named(delta, more):
    told = said(make_budget(1.0), [], make_statement(epsilon=2.0, delta=delta))
    assert (f"has delta = {delta!r}" in told) is more
    assert (f"pass delta = {DELTA!r}" in told) is more


def test_there_is_room_for_exactly_what_is_left(ledger):
    """``ledger`` is of epsilon 3."""
    whole = ledger.budget.epsilon
    fits = make_statement(epsilon=whole)
    while spent_of(ledger.budget, [fits]).epsilon > whole:
        fits = make_statement(epsilon=math.nextafter(fits.epsilon, 0.0))
    assert spent_of(ledger.budget, [fits]).epsilon <= whole
    ledger.check_room(fits)
    with pytest.raises(BudgetExceededError):
        ledger.check_room(make_statement(epsilon=1.01 * whole))
    ledger.charge(fits, estimator="DPFC")
    with pytest.raises(BudgetExceededError, match="Its budget is spent"):
        ledger.check_room(make_statement(epsilon=0.5))


def test_a_budget_of_users_asks_for_whose_a_record_is():
    budget = make_budget(unit="user")
    with pytest.raises(ValueError, match="Say whose each record is: groups"):
        check_covered(budget, make_statement(epsilon=0.5))
    check_covered(budget, make_statement(epsilon=0.5, unit="user"))
    with pytest.raises(ValueError, match="unit must be 'record'") as refused:
        check_covered(make_budget(), make_statement(epsilon=0.5, unit="user"))
    assert "Say whose" not in str(refused.value)
