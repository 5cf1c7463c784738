"""The ledger on each of its stores: what it refuses, and that it never forgets."""

import copy
import dataclasses
import json
import math
import pickle
import random
import threading
import time
from collections import namedtuple

import pytest
from dp_accounting import DpEvent

from privfeat import BudgetExceededError, LedgerError, PrivacyError, PrivacyLedger
from privfeat.core.accounting.run_count import RunCount
from privfeat.core.ledger import rows as ledger_rows
from privfeat.core.ledger.privacy_ledger import find_datasets
from privfeat.core.ledger.store import BUDGETS, CHARGES
from privfeat.core.statement.composition import compose
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.selection import Selection
from tests.core.ledgers import (
    CONTEXT,
    charge_for_ever,
    charge_often,
    exit_code,
    fit_until_killed,
    in_process,
    make_statement,
)


@pytest.fixture
def fit():
    return make_statement(epsilon=0.5)


def part_of(ledger, n_parts):
    """Return a statement of which exactly ``n_parts`` fit into the budget."""
    return make_statement(rho=ledger.remaining.rho / n_parts)


def test_ledger_remembers_every_charge(ledger, fit):
    other = make_statement(rho=0.01, delta=1e-6)
    assert [ledger.charge(s, estimator="DPFC") for s in (fit, other)] == [1, 2]
    one, two = ledger.history
    assert (one.number, one.estimator, one.status) == (1, "DPFC", "asked")
    assert (one.statement, two.statement) == (fit, other)
    total = compose([fit, other], delta=1e-5)
    assert ledger.spent.epsilon == total.epsilon
    assert ledger.spent.rho == total.mu**2 / 2
    ledger.finish(2)
    assert [charge.status for charge in ledger.history] == ["asked", "fitted"]
    assert ledger.spent.epsilon == total.epsilon


def test_ledger_is_found_again_without_its_numbers(ledger, location, fit):
    ledger.charge(fit, estimator="DPFC")
    name = ledger.budget.dataset
    for options in ({}, {"epsilon": 3, "delta": 1e-5}, {"unit": "record"}):
        again = PrivacyLedger(location, dataset=name, **options)
        assert again.budget == ledger.budget
        assert again.history == ledger.history
    assert name in find_datasets(location)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 4.0),
        ("delta", 1e-6),
        ("adjacency", "replace_one"),
        ("unit", "user"),
    ],
)
def test_a_budget_cannot_be_changed(ledger, location, name, value):
    given = {"epsilon": 3.0, "delta": 1e-5, name: value}
    with pytest.raises(ValueError, match=f"{name} must be .* cannot be changed"):
        PrivacyLedger(location, dataset=ledger.budget.dataset, **given)


def test_data_sets_in_one_ledger_have_budgets_of_their_own(ledger, location, fit):
    name = ledger.budget.dataset + ", validation"
    other = PrivacyLedger(location, dataset=name, epsilon=1.0, delta=1e-6)
    ledger.charge(fit, estimator="DPFC")
    assert other.history == []
    assert other.remaining.epsilon == 1.0


def test_a_data_set_without_a_budget_is_not_made_up(ledger, location):
    with pytest.raises(LedgerError, match="pass epsilon and delta to"):
        PrivacyLedger(location, dataset="unheard of")
    with pytest.raises(LedgerError):
        PrivacyLedger(location, dataset="unheard of", adjacency="add_remove")
    assert "unheard of" not in find_datasets(location)


def test_charge_refuses_what_does_not_fit_and_changes_nothing(ledger, fit):
    ledger.charge(fit, estimator="DPFC")
    before = ledger.history
    with pytest.raises(BudgetExceededError) as caught:
        ledger.charge(make_statement(epsilon=3.0), estimator="DPFC")
    assert repr(ledger.remaining.epsilon) in str(caught.value)
    assert ledger.history == before
    ledger.charge(make_statement(epsilon=ledger.remaining.epsilon), estimator="DPFC")
    with pytest.raises(BudgetExceededError, match=r"may have epsilon = 0\.0"):
        ledger.charge(make_statement(rho=1e-6), estimator="DPFC")


def test_the_whole_budget_may_go_to_one_fit(ledger):
    ledger.charge(make_statement(epsilon=3.0), estimator="DPFC")
    assert ledger.spent.epsilon == 3.0
    assert ledger.remaining.epsilon == 0.0


def test_sampled_fits_are_charged_by_their_loss_distributions(ledger, fit):
    sampled = make_statement(
        sampling_prob=0.1, noise_multiplier=2.0, accounting="pld", delta=1e-7
    )
    ledger.charge(fit, estimator="DPFC")
    ledger.charge(sampled, estimator="DPAdamLinear")
    assert ledger.spent.epsilon == compose([fit, sampled], delta=1e-5).epsilon
    assert ledger.spent.rho is None


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (make_statement(epsilon=math.inf), "finite epsilon"),
        (make_statement(epsilon=0.5, seeded=True), "seeded=True"),
        (make_statement(epsilon=0.5, unit="user"), "unit must be 'record'"),
        (make_statement(epsilon=0.5, adjacency="replace_one"), "adjacency must be"),
    ],
)
def test_charge_refuses_what_the_budget_does_not_cover(ledger, statement, message):
    with pytest.raises((PrivacyError, ValueError), match=message):
        ledger.charge(statement, estimator="DPFC")
    assert ledger.history == []


def test_who_charges_or_marks_takes_a_turn(ledger, location, fit, plant):
    """Who reads and then writes must be alone from the first row that it reads."""
    store, asked = type(ledger._store), []
    genuine = plant.genuine("transaction of a store", of=store)

    def transaction(self, *, write):
        asked.append(write)
        return genuine(self, write=write)

    plant("transaction of a store", transaction, of=store)
    number = ledger.charge(fit, estimator="DPFC")
    ledger.finish(number)
    assert asked == [True, True]
    assert ledger.spent.epsilon > 0 < ledger.remaining.epsilon
    assert ledger.budget.dataset in find_datasets(location)
    PrivacyLedger(location, dataset=ledger.budget.dataset)
    assert asked == [True, True, False, False, False, False]
    PrivacyLedger(location, dataset="another one", epsilon=1.0, delta=1e-5)
    assert asked[6:]
    assert all(asked[6:])


def test_copies_spend_the_same_budget(ledger, fit):
    copies = [copy.copy(ledger), copy.deepcopy(ledger)]
    copies.append(pickle.loads(pickle.dumps(ledger)))
    for each in copies:
        each.charge(fit, estimator="DPFC")
    assert len(ledger.history) == 3
    assert all(each.spent == ledger.spent for each in copies)


def test_event_is_that_of_dp_accounting(ledger, fit):
    """Other accountants can read the charges without privfeat."""
    ledger.charge(fit, estimator="DPFC")
    with ledger._store.transaction(write=False) as rows:
        (row,) = rows.select(CHARGES, ledger.budget.dataset)
    assert read_event(row["event"]) == fit.event()


def test_a_search_without_an_event_is_charged(ledger):
    """dp-accounting knows no negative eta; the cost is in the statement."""
    runs = RunCount.from_mean(5.0, -0.5)
    search = PrivacyStatement(
        epsilon=1.0, delta=1e-6, rho=None, mu=None, adjacency="add_remove",
        accounting="selection", releases=(), public=(), seeded=False,
        selection=Selection(0.2, runs.eta, runs.gamma, "public"),
    )  # fmt: skip
    ledger.charge(search, estimator="DPRandomizedSearch")
    with ledger._store.transaction(write=False) as rows:
        (row,) = rows.select(CHARGES, ledger.budget.dataset)
    assert row["event"] is None
    assert [charge.statement for charge in ledger.history] == [search]


def read_event(text):
    """Return the dp-accounting event in ``text``."""

    def build(fields):
        values = {k: build_any(v) for k, v in fields.items()}
        return namedtuple("Event", values)(**values)

    def build_any(value):
        if isinstance(value, dict):
            return build(value)
        return [build_any(v) for v in value] if isinstance(value, list) else value

    return DpEvent.from_named_tuple(build(json.loads(text)))


def test_another_ledger_in_the_place_of_this_one_is_noticed(ledger, fit):
    ledger.charge(fit, estimator="DPFC")
    uid = "0" * 32
    ledger.budget = dataclasses.replace(ledger.budget, uid=uid)
    with pytest.raises(LedgerError, match="found another in its place"):
        _ = ledger.spent
    with pytest.raises(LedgerError, match="found another in its place"):
        ledger.charge(fit, estimator="DPFC")


CHANGES = [
    (BUDGETS, {"epsilon": 30.0}),
    (BUDGETS, {"delta": 0.1}),
    (BUDGETS, {"version": 1}),
    (BUDGETS, {"version": 3}),
    (CHARGES, {"number": 2, "statement": make_statement(epsilon=0.1).to_json()}),
    (CHARGES, {"number": 1, "estimator": "DPNewton"}),
    (CHARGES, {"number": 1, "event": None}),
]


@pytest.mark.parametrize(("table", "change"), CHANGES)
def test_a_changed_row_is_noticed(ledger, location, fit, table, change):
    for _ in range(2):
        ledger.charge(fit, estimator="DPFC")
    with ledger._store.transaction(write=True) as rows:
        rows.update(table, {"dataset": ledger.budget.dataset, **change})
    check_noticed(ledger, location, fit)


def check_noticed(ledger, location, fit):
    with pytest.raises(LedgerError, match=r"damaged|version"):
        _ = PrivacyLedger(location, dataset=ledger.budget.dataset).spent
    with pytest.raises(LedgerError, match=r"damaged|version"):
        ledger.charge(fit, estimator="DPFC")


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_lost_row_is_noticed(ledger, location, fit, lost, plant):
    """The last one too."""
    for _ in range(3):
        ledger.charge(fit, estimator="DPFC")
    lose_rows(plant, ledger, lambda row: row.get("number") == lost)
    check_noticed(ledger, location, fit)


def test_an_insert_that_is_swallowed_is_noticed(ledger, fit, plant):
    lose_rows(plant, ledger, lambda row: "number" in row)
    with pytest.raises(LedgerError, match="damaged"):
        ledger.charge(fit, estimator="DPFC")
    plant.undo()
    assert ledger.history == []


def test_a_store_that_keeps_nothing_is_noticed(ledger, location, fit, plant):
    with ledger._store.transaction(write=False) as rows:
        cls = type(rows)
    name = f"{ledger.budget.dataset} anew"
    with plant.context() as patch:
        for method in ("row that a store adds", "row that a store changes"):
            patch(method, lambda *_: None, of=cls)
        with pytest.raises(LedgerError, match="does not keep what is written"):
            ledger.charge(fit, estimator="DPFC")
        with pytest.raises(LedgerError):
            PrivacyLedger(location, dataset=name, epsilon=1.0, delta=1e-5)
    assert ledger.history == []


def lose_rows(plant, ledger, is_lost):
    """Let the store forget rows."""
    with ledger._store.transaction(write=False) as rows:
        cls = type(rows)
    genuine = plant.genuine("rows that a store finds", of=cls)

    def select(*arguments):
        return [row for row in genuine(*arguments) if not is_lost(row)]

    plant("rows that a store finds", select, of=cls)


def test_a_row_is_written_once(ledger, fit):
    ledger.charge(fit, estimator="DPFC")
    with ledger._store.transaction(write=False) as rows:
        (row,) = rows.select(CHARGES, ledger.budget.dataset)
    with pytest.raises(LedgerError), ledger._store.transaction(write=True) as rows:
        rows.insert(CHARGES, row)
    with pytest.raises(LedgerError), ledger._store.transaction(write=True) as rows:
        rows.update(CHARGES, {**row, "number": 2})
    assert len(ledger.history) == 1


def test_a_budget_of_an_older_release_is_sealed_by_its_next_charge(ledger, fit):
    """Version 1 had no seal: its checksum covered the budget alone."""
    old = ledger_rows._digest(1, *vars(ledger.budget).values())
    with ledger._store.transaction(write=True) as rows:
        row = {"dataset": ledger.budget.dataset, "version": 1, "sha256": old}
        rows.update(BUDGETS, row)
    assert ledger.history == []
    ledger.charge(fit, estimator="DPFC")
    with ledger._store.transaction(write=False) as rows:
        (row,) = rows.select(BUDGETS, ledger.budget.dataset)
    assert row["version"] == 2


@pytest.mark.validation
@pytest.mark.parametrize("path", [None, 1, ["a"]])
def test_ledger_refuses_what_is_no_place(path):
    with pytest.raises(TypeError, match="path must be"):
        PrivacyLedger(path, dataset="a")


def test_threads_are_charged_exactly(ledger):
    fit, errors = part_of(ledger, 20), []

    def work():
        try:
            charge_often(ledger, fit, 8)
        except LedgerError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [charge.number for charge in ledger.history] == list(range(1, 21))


def check_processes(ledger, n_processes, n_each, n_fitting):
    fit = part_of(ledger, n_fitting)
    processes = [
        in_process(charge_often, ledger, fit, n_each) for _ in range(n_processes)
    ]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * n_processes
    assert [c.number for c in ledger.history] == list(range(1, n_fitting + 1))
    assert ledger.spent.epsilon == compose([fit] * n_fitting).epsilon <= 3.0


def test_processes_are_charged_exactly(ledger):
    check_processes(ledger, n_processes=4, n_each=4, n_fitting=12)


@pytest.mark.slow
def test_a_thousand_charges_of_eight_processes_are_exact(ledger):
    """Each of the eight asks for more than its part, so the budget is what stops."""
    check_processes(ledger, n_processes=8, n_each=130, n_fitting=1000)


def test_a_fit_killed_at_any_step_is_charged_if_it_drew(ledger, tmp_path):
    """Every call to the store, by counting up until the process lives to the end."""
    fit, step, code, drew = make_statement(rho=1e-4), 0, None, []
    while code != 0:
        n_before, noise = len(ledger.history), tmp_path / str(step)
        code = exit_code(fit_until_killed, ledger, fit, str(noise), step)
        n_charged = len(ledger.history) - n_before
        assert code in (0, -9)
        assert n_charged in (0, 1)
        assert n_charged >= noise.exists()
        drew.append(noise.exists())
        ledger.charge(fit, estimator="Next")  # and nobody is kept waiting
        step += 1
    assert step > 8
    assert drew == sorted(drew)
    assert 2 <= sum(drew) < step
    assert (
        ledger.spent.epsilon == compose([c.statement for c in ledger.history]).epsilon
    )


def test_a_process_killed_at_any_moment_leaves_every_charge(ledger):
    """At random moments, the inside of a commit included."""
    fit, moments = make_statement(rho=1e-4), random.Random(0)
    for _ in range(8):
        n_before = len(ledger.history)
        receiver, sender = CONTEXT.Pipe(duplex=False)
        process = in_process(charge_for_ever, ledger, fit, sender)
        sender.close()
        assert receiver.poll(900)
        time.sleep(moments.uniform(0.0, 0.1))
        process.kill()
        process.join()
        told = n_before
        try:
            while True:
                told = receiver.recv()
        except EOFError:
            assert told <= len(ledger.history) <= told + 1
    assert ledger.charge(fit, estimator="Next") == len(ledger.history)


def test_repr_says_where_and_what(ledger):
    assert repr(ledger).startswith("PrivacyLedger('")
    assert repr(ledger).endswith(f"dataset={ledger.budget.dataset!r})")
