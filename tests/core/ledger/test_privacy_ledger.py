"""The ledger on each of its stores: what it refuses, and that it never forgets."""

import copy
import json
import math
import pickle
from collections import namedtuple
from datetime import datetime

import pytest
from dp_accounting import DpEvent

from privfeat import BudgetExceededError, LedgerError, PrivacyError, PrivacyLedger
from privfeat.core.accounting.run_count import RunCount
from privfeat.core.ledger.opening import find_datasets
from privfeat.core.ledger.runs import finish
from privfeat.core.ledger.store import CHARGES
from privfeat.core.statement.composition import compose
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.core.statement.rounding import rounded_down
from privfeat.core.statement.selection import Selection
from tests.core.ledgers import make_statement


def test_ledger_remembers_every_charge(ledger, fit):
    other = make_statement(rho=0.01, delta=1e-6)
    assert [ledger.charge(s, estimator="DPFC") for s in (fit, other)] == [1, 2]
    one, two = ledger.history
    assert (one.number, one.estimator, one.status) == (1, "DPFC", "asked")
    assert (one.statement, two.statement) == (fit, other)
    total = compose([fit, other], delta=1e-5)
    assert ledger.spent.epsilon == total.epsilon
    assert ledger.spent.rho == total.mu**2 / 2
    finish(ledger, 2, [None])
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


def test_a_budget_that_is_created_is_told_and_beside_which(location, capsys):
    """A path with a slip of the pen has a whole budget of its own."""
    for name in ("scans", "scans", *(f"a{i}" for i in range(12)), "scan plans"):
        PrivacyLedger(location, dataset=name, epsilon=3.0, delta=1e-5)
    first, *_, second = capsys.readouterr().err.splitlines()
    assert "created a budget for 'scans', epsilon = 3 at delta = 1e-05" in first
    assert "created a budget for 'scan plans'" in second
    assert "which held 'scans', " in second


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


def test_a_name_that_looks_like_another_gets_no_budget(ledger, location):
    """The records of one data set would have two, and all of both to spend."""
    name, given = ledger.budget.dataset, {"epsilon": 3.0, "delta": 1e-5}
    PrivacyLedger(location, dataset="caf\u00e9", **given)
    for other in (f" {name}", name.upper(), "cafe\u0301", "Cafe\u0301 "):
        with pytest.raises(ValueError, match="dataset must differ from"):
            PrivacyLedger(location, dataset=other, **given)
        with pytest.raises(ValueError, match="dataset must differ from"):
            PrivacyLedger(location, dataset=other, new_dataset=True, **given)
        assert other not in find_datasets(location)


def test_a_name_with_a_slip_of_the_pen_gets_a_budget_only_where_it_is_said(location):
    given = {"epsilon": 3.0, "delta": 1e-5}
    PrivacyLedger(location, dataset="mammograms", **given)
    for other in (
        "mamograms",
        "mammgorams",
        "mammograms-2",
        "mámmograms",
        "m@mmograms",
    ):
        with pytest.raises(ValueError, match=r"from 'mammograms'.*new_dataset"):
            PrivacyLedger(location, dataset=other, **given)
        assert other not in find_datasets(location)
    name = "mammograms-2"
    made = PrivacyLedger(location, dataset=name, new_dataset=True, **given)
    for options in ({}, given, given | {"new_dataset": True}):  # as on another day
        assert PrivacyLedger(location, dataset=name, **options).budget == made.budget


def test_a_data_set_that_is_not_there_is_not_near_nothing(location):
    """Who opens a budget by a name with a slip is told the name, and makes none."""
    PrivacyLedger(location, dataset="retinas", epsilon=3.0, delta=1e-5)
    for other in ("Retinas ", "retnias", "re tinas"):
        with pytest.raises(LedgerError, match="It is near 'retinas': open that"):
            PrivacyLedger(location, dataset=other)


def test_who_charged_is_in_the_history_where_it_is_said(ledger, location, fit):
    name = ledger.budget.dataset
    ann = PrivacyLedger(location, dataset=name, who="Ann by the sea")
    copied = pickle.loads(pickle.dumps(ann))
    for each in (ledger, ann, copied):
        each.charge(fit, estimator="DPFC")
    assert [c.who for c in ledger.history] == [None, "Ann by the sea", "Ann by the sea"]
    assert all(datetime.fromisoformat(charge.asked) for charge in ledger.history)
    assert "Ann" not in repr(ann)


def test_who_charged_is_under_the_checksum(ledger, location, fit):
    name = ledger.budget.dataset
    PrivacyLedger(location, dataset=name, who="Ann").charge(fit, estimator="DPFC")
    with ledger._store.transaction(write=True) as rows:
        (row,) = rows.select(CHARGES, name)
        row["asked"] = row["asked"].replace("Ann", "Bob")
        rows.update(CHARGES, row)
    with pytest.raises(LedgerError, match="charge 1 is not as written; delete"):
        _ = ledger.history


def test_who_charged_needs_no_new_column(ledger, location, fit):
    """Older releases of this version read it, and databases stay as they are."""
    name = ledger.budget.dataset
    PrivacyLedger(location, dataset=name, who="Ann").charge(fit, estimator="DPFC")
    with ledger._store.transaction(write=False) as rows:
        (row,) = rows.select(CHARGES, name)
    known = {"dataset", "number", "estimator", "asked", "statement", "event", "sha256"}
    assert set(row) - {"fitted"} == known
    assert row["asked"][10] == "T"  # old releases show the first ten: the day


@pytest.mark.validation
@pytest.mark.parametrize("who", ["", "a" * 101, 1, " Ann", "Ann\n", "A\u200bnn"])
def test_ledger_refuses_a_wrong_who(tmp_path, who):
    with pytest.raises(ValueError, match="who must"):
        PrivacyLedger(tmp_path / "a", dataset="a", epsilon=1.0, delta=1e-5, who=who)
    assert not (tmp_path / "a").exists()


@pytest.mark.validation
def test_ledger_refuses_a_wrong_new_dataset(tmp_path):
    with pytest.raises(TypeError, match="new_dataset must be"):
        PrivacyLedger(
            tmp_path / "a", dataset="a", epsilon=1.0, delta=1e-5, new_dataset="yes"
        )


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
    assert rounded_down(ledger.remaining.epsilon) in str(caught.value)
    assert ledger.history == before
    ledger.charge(make_statement(epsilon=ledger.remaining.epsilon), estimator="DPFC")
    with pytest.raises(BudgetExceededError, match="Its budget is spent: nothing more"):
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
        (make_statement(epsilon=0.5, unit="user"), "got 'user'. A budget of users"),
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
    finish(ledger, number, [None])
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


@pytest.mark.validation
@pytest.mark.parametrize("path", [None, 1, ["a"]])
def test_ledger_refuses_what_is_no_place(path):
    with pytest.raises(TypeError, match="path must be"):
        PrivacyLedger(path, dataset="a")


def test_repr_says_where_and_what(ledger):
    assert repr(ledger).startswith("PrivacyLedger('")
    assert repr(ledger).endswith(f"dataset={ledger.budget.dataset!r})")
