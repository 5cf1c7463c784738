"""A row of a ledger that was changed, lost or swallowed is noticed."""

import dataclasses

import pytest

from privfeat import LedgerError, PrivacyLedger
from privfeat.core.ledger import rows as ledger_rows
from privfeat.core.ledger.store import BUDGETS, CHARGES
from tests.core.ledgers import make_statement


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
