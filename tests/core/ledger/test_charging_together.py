"""Of processes that fit together the first charges, and none starts unless it could."""

import numpy as np
import pytest

from privfeat import BudgetExceededError, PrivacyError
from privfeat.core.callers.folds import Uncovered
from privfeat.core.ledger import charging
from privfeat.core.sums.processes import Team
from tests.core.ledgers import charged, make_statement


@pytest.fixture
def fit():
    return make_statement(epsilon=0.5)


class Second(Team):
    """The second of two processes; the first says 1 at the calls that are named."""

    def __new__(cls, *says):
        team = super().__new__(cls)
        object.__setattr__(team, "asked", iter(says))
        return team

    def __init__(self, *says):
        super().__init__(1, 2)

    def each(self, value):
        return [next(self.asked), int(value)]

    def from_first(self, values, what):
        assert values.any()  # a name of its own, which does not count
        return np.array([1, 2**56 - 1])


@pytest.fixture
def as_second(plant):
    def join(*says):
        team = Second(*says)
        plant("team that charges", lambda: team)

    return join


def test_charged_lets_the_first_process_charge_for_all(ledger, fit, as_second):
    as_second(1, 0, 0)  # it has a ledger, with room, and could charge it
    bodies = []
    with charged(ledger, fit, estimator="DPFC") as found:
        bodies.append("ran")
    assert bodies == ["ran"]
    number, statement = found
    assert number is None
    assert statement.charge == "0100000000000000ffffffffffffff00"  # as the first has it
    assert ledger.history == []


def test_charged_does_not_start_what_the_first_process_could_not_charge(
    ledger, fit, as_second
):
    for says in [(1, 1), (1, 0, 1)]:  # before the body, and by the charge itself
        as_second(*says)
        with (
            pytest.raises(PrivacyError, match="another process could not charge"),
            charged(ledger, fit, estimator="DPFC"),
        ):
            pytest.fail("the body ran")


def test_charged_tells_of_a_spent_budget_in_every_process(ledger, fit, as_second):
    """A supervisor stops at its exit status, and would try again at another."""
    for says in [(1, 2), (1, 0, 2)]:
        as_second(*says)
        with (
            pytest.raises(BudgetExceededError, match="another process found too") as e,
            charged(ledger, fit, estimator="DPFC"),
        ):
            pytest.fail("the body ran")
        assert e.value.__notes__ == [charging.NOTHING_DRAWN]


def test_the_first_process_alone_looks_for_room(ledger, as_second):
    """What the second has in its own file is not what the first charges."""
    as_second(1, 0, 0)
    with charged(ledger, make_statement(epsilon=4.0), estimator="DPFC") as (number, _):
        assert number is None


@pytest.mark.parametrize(
    ("is_second", "has_ledger", "note"),
    [
        (True, True, charging.MAYBE_CHARGED),  # the first may have drawn by now
        (True, False, charging.NOTHING_DRAWN),
        (False, True, charging.NOTHING_DRAWN),
    ],
)
def test_what_fails_before_the_charge_says_what_its_process_knows(
    ledger, fit, as_second, is_second, has_ledger, note
):
    if is_second:
        as_second(int(has_ledger), 0)
    mine = ledger if has_ledger else None
    with (
        pytest.raises(MemoryError) as caught,
        charging.charged(mine, fit, estimator="DPFC"),
    ):
        raise MemoryError
    assert caught.value.__notes__ == [note]


@pytest.mark.parametrize(("epsilon", "told"), [(0.5, 0), (4.0, 2)])
def test_charged_tells_the_others_why_it_refuses(ledger, plant, epsilon, told):
    class First(Team):
        def each(self, value):
            heard.append(int(value))
            return [int(value), int(len(heard) == 1)]

        def from_first(self, values, what):
            return values

    heard = []
    plant("team that charges", lambda: First(0, 2))
    try:
        with charged(ledger, make_statement(epsilon=epsilon), estimator="DPFC"):
            pass
    except (BudgetExceededError, PrivacyError):
        pass
    assert heard == ([1, told] if told else [1, 0, 0])


def test_an_interrupt_while_the_first_process_charges_says_where_to_look(
    ledger, fit, as_second, monkeypatch
):
    def each(self, value):
        asked.append(value)
        if len(asked) == 3:  # waits to hear whether the first one could charge
            raise KeyboardInterrupt
        return [len(asked) == 1, value]

    asked = []
    monkeypatch.setattr(Second, "each", each)
    as_second()
    with (
        pytest.raises(KeyboardInterrupt) as caught,
        charged(ledger, fit, estimator="DPFC"),
    ):
        pytest.fail("the body ran")
    said = ["Whether it was charged, the history of its ledger says."]
    assert caught.value.__notes__ == said


def test_charged_refuses_folds_that_the_first_process_does_not_have(
    ledger, fit, as_second, plant
):
    as_second(1, 0)  # it has a ledger, and charged it
    choice = Uncovered("folds", "Try.")
    plant("choice that no charge covers", lambda _: (choice, False, False))
    with (
        pytest.raises(PrivacyError, match="which the charge does not cover, got folds"),
        charged(ledger, fit, estimator="DPFC"),
    ):
        pytest.fail("the body ran")


@pytest.mark.parametrize("first_has_one", [0, 1])
def test_charged_refuses_a_ledger_that_some_processes_lack(
    ledger, fit, as_second, first_has_one
):
    as_second(first_has_one)
    mine = None if first_has_one else ledger
    with (
        pytest.raises(PrivacyError, match="must have a ledger, or none"),
        charged(mine, fit, estimator="DPFC"),
    ):
        pytest.fail("the body ran")
    assert ledger.history == []
