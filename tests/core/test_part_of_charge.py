"""A part of a charge pays once, in its turn, for the plan that was told."""

import copy
import pickle
from dataclasses import replace

import pytest

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.part_of_charge import PartOfCharge
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.exceptions import PrivacyError

PLAN = plan_releases([Query("sum", 1.0)], rho=0.1)


def statement_of(plan=PLAN, **options):
    return PrivacyStatement.from_plan(
        plan, **{"public": ("a fact",), "seeded": False} | options
    )


@pytest.fixture
def part():
    made = PartOfCharge(
        PLAN,
        unit="record",
        arithmetic="float64",
        seeded=False,
        charge_whole=lambda: None,
    )
    made.is_open = True
    return made


def test_a_part_takes_the_charge_that_was_told(part):
    part.charge(statement_of())
    assert part.taken


def test_a_part_takes_one_charge(part):
    part.charge(statement_of())
    with pytest.raises(PrivacyError, match="fitted once"):
        part.charge(statement_of())


def test_a_part_takes_none_before_its_turn(part):
    part.is_open = False
    with pytest.raises(PrivacyError, match="in its turn"):
        part.charge(statement_of())


@pytest.mark.parametrize(
    "other",
    [
        statement_of(plan_releases([Query("sum", 1.0)], rho=0.1 + 1e-9)),
        statement_of(plan_releases([Query("sum", 1.0, count=2)], rho=0.1)),
        statement_of(plan_releases([Query("sum", 2.0)], rho=0.1)),
        statement_of(plan_releases([Query("gram", 1.0)], rho=0.1)),
        statement_of(
            plan_releases([Query("sum", 1.0)], rho=0.1, adjacency="replace_one")
        ),
        statement_of(unit="user"),
        statement_of(arithmetic="exact"),
        statement_of(seeded=True),
    ],
)
def test_a_part_refuses_another_plan(part, other):
    with pytest.raises(PrivacyError, match="exactly what it has told"):
        part.charge(other)
    assert not part.taken


def test_a_part_refuses_a_selection(part, make_selection):
    told = statement_of()
    chosen = replace(told, accounting="selection", selection=make_selection())
    with pytest.raises(PrivacyError, match="exactly what it has told"):
        part.charge(chosen)


@pytest.fixture
def make_selection():
    from privfeat.core.statement.selection import Selection

    return lambda: Selection(run_mu=0.2, eta=0.0, gamma=0.1, scored_on="public")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_part_is_not_copied(part, copied):
    with pytest.raises(PrivacyError, match="must not be copied"):
        copied(part)
