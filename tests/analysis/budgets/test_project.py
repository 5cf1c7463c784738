"""A planned project costs what its fits will be charged."""

import math

import numpy as np
import pytest

from privfeat import (
    DPFC,
    BudgetExceededError,
    DPRandomizedSearch,
    PrivacyError,
    PrivacyLedger,
)
from privfeat.analysis.budgets.project import PlannedFit, plan_project
from privfeat.core.accounting.conversions import gaussian_epsilon
from tests.core.ledgers import make_statement

BUDGET = {"epsilon": 3.0, "delta": 1e-5}


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "a.ledger", dataset="a", **BUDGET)


def test_plan_is_what_the_ledger_charges(ledger):
    fits = [PlannedFit(epsilon=0.5, count=3), PlannedFit(rho=0.01, delta=1e-6)]
    plan = plan_project(fits, **BUDGET)
    assert plan.fits_budget
    for fit in fits:
        for _ in range(fit.count):
            ledger.charge(fit.state("add_remove", "record"), estimator="DPFC")
    assert plan.total == ledger.spent
    assert plan.remaining == ledger.remaining


@pytest.mark.slow
def test_plan_of_a_real_fit_and_a_real_search_is_their_charge(ledger):
    X, y = np.eye(6)[np.arange(60) % 6], np.arange(60) % 3
    plan = plan_project(
        [
            PlannedFit(epsilon=0.5),
            PlannedFit(epsilon=1.0, mean_runs=3.0, delta=1e-6),
        ],
        **BUDGET,
    )
    clf = DPFC(n_iter=2, classes=range(3), epsilon=0.5, ledger=ledger).fit(X, y)
    assert clf.privacy_.mu == plan.fits[0].state("add_remove", "record").mu
    DPRandomizedSearch(
        DPFC(n_iter=2, classes=range(3)),
        {"learning_rate": [1.0]},
        epsilon=1.0,
        delta=1e-6,
        mean_runs=3.0,
        ledger=ledger,
    ).fit(X, y)
    assert ledger.spent == plan.total


def test_plan_of_sampled_steps_is_that_of_their_noise(ledger):
    fit = PlannedFit(
        noise_multiplier=2.0, sampling_prob=0.1, steps=3, accounting="rdp", delta=1e-6
    )
    made = make_statement(
        sampling_prob=0.1, noise_multiplier=2.0, accounting="rdp", delta=1e-6
    )
    plan = plan_project([fit], **BUDGET)
    ledger.charge(made, estimator="DPSGDClassifier")
    assert plan.total == ledger.spent
    assert plan.total.rho is None


def test_steps_without_sampling_add_up():
    plan = plan_project([PlannedFit(noise_multiplier=10.0, steps=4)], **BUDGET)
    assert plan.total.epsilon == pytest.approx(gaussian_epsilon(0.2, 1e-5), rel=1e-9)


def test_plan_counts_what_a_ledger_has_spent_and_charges_nothing(ledger):
    ledger.charge(make_statement(epsilon=1.0), estimator="DPFC")
    plan = plan_project([PlannedFit(epsilon=1.0)], ledger=ledger)
    assert plan.spent == ledger.spent
    assert plan.total.epsilon > 1.4
    assert plan.costs[0].epsilon == 1.0
    assert len(ledger.history) == 1


def test_one_more_fit_of_what_a_plan_leaves_is_granted_and_no_larger_one(ledger):
    plan = plan_project([PlannedFit(epsilon=0.5, count=7)], ledger=ledger)
    more = plan.remaining.epsilon
    for _ in range(7):
        ledger.charge(make_statement(epsilon=0.5), estimator="DPFC")
    with pytest.raises(BudgetExceededError):
        ledger.charge(make_statement(epsilon=more * (1 + 1e-6)), estimator="DPFC")
    ledger.charge(make_statement(epsilon=more), estimator="DPFC")


def test_a_plan_that_is_too_much_says_from_which_fit_on():
    fits = [PlannedFit(name="first", epsilon=1.0), PlannedFit(name="last", epsilon=2.9)]
    plan = plan_project(fits, **BUDGET)
    assert not plan.fits_budget
    assert plan.remaining.epsilon == 0.0
    lines = str(plan).splitlines()
    assert lines[3].endswith("  first")
    assert lines[4].endswith("  last  (TOO MUCH)")
    assert lines[5] == "left    nothing: these fits cost more than the budget"


def test_plan_prints_costs_rounded_up_and_what_is_left_rounded_down():
    plan = plan_project([PlannedFit(name="seven", epsilon=0.5, count=7)], **BUDGET)
    *_, row, left = str(plan).splitlines()
    times, cost, together, name = row.split()
    assert (times, name) == ("7", "seven")
    assert float(cost) == float(together) >= plan.total.epsilon
    assert float(left.split()[3].rstrip(",")) <= plan.remaining.epsilon


def test_plan_of_users_and_of_replaced_records_is_of_these():
    plan = plan_project([PlannedFit()], **BUDGET, adjacency="replace_one", unit="user")
    assert (plan.budget.adjacency, plan.budget.unit) == ("replace_one", "user")
    assert plan.total.epsilon == 1.0


@pytest.mark.validation
@pytest.mark.parametrize(
    ("fit", "message"),
    [
        ({"count": 0}, "count must"),
        ({"count": 1.5}, "count must"),
        ({"steps": 0}, "steps must"),
        ({"sampling_prob": 0.0}, "sampling_prob must"),
        ({"sampling_prob": 1.1}, "sampling_prob must"),
        ({"epsilon": math.nan}, "epsilon must"),
        ({"epsilon": 1.0, "rho": 0.1}, "at most one budget"),
        ({"delta": 2.0}, "delta must"),
        ({"mean_runs": 10.0, "rho": 0.1}, "by epsilon"),
        ({"mean_runs": 0.0}, "mean"),
    ],
)
def test_plan_refuses_a_wrong_fit(fit, message):
    with pytest.raises((TypeError, ValueError), match=message):
        plan_project([PlannedFit(**fit)], **BUDGET)


@pytest.mark.validation
def test_plan_refuses_no_fit_no_budget_two_budgets_and_no_privacy(ledger):
    with pytest.raises(ValueError, match="at least one PlannedFit"):
        plan_project([], **BUDGET)
    with pytest.raises(ValueError, match="epsilon and delta must be given"):
        plan_project([PlannedFit()])
    with pytest.raises(ValueError, match="epsilon must be None with a ledger"):
        plan_project([PlannedFit()], epsilon=1.0, ledger=ledger)
    with pytest.raises(PrivacyError, match="finite epsilon"):
        plan_project([PlannedFit(epsilon=math.inf)], **BUDGET)
