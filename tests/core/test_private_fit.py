"""One order for all fits: nothing is drawn before it is charged, or beside the plan."""

import ast
import dataclasses
import math

import numpy as np
import pytest

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.noise.keys import KeyStream
from privfeat.core.private_fit import private_fit, private_selection
from privfeat.core.statement.selection import Selection
from privfeat.core.sums.totals import ExactSum
from privfeat.exceptions import LedgerError, PrivacyError, PrivacyWarning
from tests.audited import CORE, ROOT
from tests.core.ledgers import make_statement

SUM = ExactSum(np.zeros(2, np.int64), 2.0**-20)


class Estimator:
    """What a private fit needs of an estimator."""

    def __init__(self, ledger=None):
        self.ledger, self.sum_ = ledger, "of an earlier fit"


@pytest.fixture
def plan():
    return plan_releases([Query("sum", 1.0)], epsilon=0.5)


def begin(estimator, plan, seed=None, **options):
    options = {"public": (), "n_units": 2, "forget": ("sum_",)} | options
    return private_fit(estimator, plan, KeyStream(seed), **options)


def test_a_fit_is_charged_and_stated_before_it_draws(ledger, plan):
    estimator = Estimator(ledger)
    fit = begin(estimator, plan)
    assert (ledger.history, fit.charge) == ([], None)
    assert not hasattr(estimator, "privacy_")
    with fit.drawing() as mechanism:
        assert not hasattr(estimator, "sum_")
        assert (ledger.history, hasattr(estimator, "privacy_")) == ([], False)
        mechanism.release("sum", SUM)
        assert estimator.privacy_ == fit.statement
        assert [charge.status for charge in ledger.history] == ["asked"]
    assert fit.charge == 1
    (charge,) = ledger.history
    assert (charge.status, charge.estimator) == ("fitted", "Estimator")


def test_noise_is_drawn_after_the_charge(ledger, plan, plant):
    fit, charges = begin(Estimator(ledger), plan), []

    def draw(key, shape, stddev):
        charges.append(len(ledger.history))
        return np.zeros(shape)

    plant("Gaussian noise", draw)
    with fit.drawing() as mechanism:
        mechanism.release("sum", SUM)
    assert charges == [1]


def test_what_fails_before_the_first_release_costs_nothing(ledger, plan):
    """As a file that cannot be read to its end, or a sum that has no room in memory."""
    estimator = Estimator(ledger)
    fit = begin(estimator, plan)
    with pytest.raises(MemoryError), fit.drawing():
        raise MemoryError
    bad = ExactSum(np.full(2, np.nan), 2.0**-20)
    again = begin(estimator, plan)
    with pytest.raises(PrivacyError, match="finite"), again.drawing() as mechanism:
        mechanism.release("sum", bad)
    assert (ledger.history, hasattr(estimator, "privacy_")) == ([], False)


def test_a_fit_is_charged_once_for_all_its_releases(ledger):
    plan = plan_releases([Query("sum", 1.0, count=3)], epsilon=0.5)
    fit = begin(Estimator(ledger), plan)
    with fit.drawing() as mechanism:
        for _ in range(3):
            mechanism.release("sum", SUM)
    assert len(ledger.history) == 1


def test_nothing_is_drawn_where_the_charge_fails(ledger, plan, plant):
    estimator = Estimator(ledger)
    fit = begin(estimator, plan)

    def fail(self, statement, *, estimator):
        raise LedgerError("disk full")

    plant("charge of a ledger", fail)
    with (
        pytest.raises(LedgerError, match="disk full"),
        fit.drawing() as mechanism,
    ):
        mechanism.release("sum", SUM)
    assert not hasattr(estimator, "privacy_")


def test_what_is_done_after_the_charge_is_done_before_the_draw(ledger, plan):
    fit, done = begin(Estimator(ledger), plan), []
    with fit.drawing() as mechanism:
        fit.after_charge(lambda: done.append(fit.charge))
        assert done == []
        mechanism.release("sum", SUM)
        fit.charge_now()
    assert done == [1]


def test_a_fit_is_not_charged_under_settings_that_refuse_its_draws(
    ledger, plan, monkeypatch
):
    """Networks, temperatures and searches were: their mechanism refused, too late."""
    estimator = Estimator(ledger)
    fit = begin(estimator, plan)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    with pytest.raises(PrivacyError, match="IEEE 754"), fit.charging():
        pytest.fail("the body ran")
    assert ledger.history == []
    assert not hasattr(estimator, "privacy_")


def test_nor_does_a_seeded_fit_begin_under_them(plan, monkeypatch):
    with pytest.warns(PrivacyWarning, match="random_state"):
        fit = begin(estimator := Estimator(), plan, seed=3)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    with pytest.raises(PrivacyError, match="IEEE 754"), fit.charging():
        pytest.fail("the body ran")
    assert (estimator.sum_, hasattr(estimator, "privacy_")) == (
        "of an earlier fit",
        False,
    )


def test_a_fit_draws_all_that_it_planned(ledger, plan):
    fit = begin(Estimator(ledger), plan)
    with pytest.raises(PrivacyError, match="all planned releases"), fit.drawing():
        pass
    assert ledger.history == []


def test_a_fit_draws_while_it_is_charged_alone(plan):
    fit = begin(Estimator(), plan)
    with pytest.raises(PrivacyError, match="must be charged before it draws"):
        fit.mechanism(plan)
    with fit.drawing() as mechanism:
        mechanism.release("sum", SUM)
    with pytest.raises(PrivacyError, match="must be charged before it draws"):
        fit.mechanism(plan)


def test_a_fit_draws_its_plan_once(plan):
    """A second mechanism, or a second body, would draw twice what is stated."""
    fit = begin(Estimator(), plan)
    with fit.drawing() as mechanism:
        mechanism.release("sum", SUM)
        with pytest.raises(PrivacyError, match="draw its plan once"):
            fit.mechanism(plan)
    with pytest.raises(PrivacyError, match="charged once"), fit.drawing():
        pytest.fail("the body ran")


def test_a_fit_draws_no_other_plan(plan):
    fit = begin(Estimator(), plan)
    other = plan_releases([Query("sum", 1.0)], epsilon=50.0)
    with (
        pytest.raises(PrivacyError, match="the plan that it has stated"),
        fit.drawing(),
    ):
        fit.mechanism(other)


@pytest.fixture
def select(ledger):
    """Return what begins a selection among runs of mu = 0.2."""

    def begin(**changes):
        selection = Selection(run_mu=0.2, eta=0.0, gamma=0.1, scored_on="holdout")
        parts = {"accounting": "selection", "rho": None, "mu": None, "releases": ()}
        parts |= {"selection": selection} | changes
        statement = dataclasses.replace(make_statement(epsilon=2.0), **parts)
        options = {"n_units": 2, "forget": (), "classes_read": False}
        return private_selection(
            Estimator(ledger), statement, KeyStream(None), **options
        )

    return begin


def test_a_selection_draws_in_its_runs(ledger, plan, select):
    fit = select()
    with pytest.raises(PrivacyError, match="draw one by one"), fit.drawing():
        pass
    with fit.charging(name="Search"):
        assert len(ledger.history) == 1  # fits in its runs draw by themselves
        fit.mechanism(plan).release("sum", SUM)
        fit.mechanism(plan).release("sum", SUM)
    assert [charge.estimator for charge in ledger.history] == ["Search"]


@pytest.mark.parametrize(
    "costs",
    [
        {"epsilon": 0.8},
        {"epsilon": math.inf},
        {"epsilon": 0.1, "adjacency": "replace_one"},
        {"noise_multiplier": 9.0, "accounting": "pld"},
    ],
)
def test_a_run_draws_no_plan_that_costs_more_than_a_run(select, costs):
    sampled = 0.5 if "accounting" in costs else 1.0
    plan = plan_releases([Query("sum", 1.0, sampling_prob=sampled)], **costs)
    fit = select()
    with fit.charging(), pytest.raises(PrivacyError, match="a run must draw plans"):
        fit.mechanism(plan)


def test_a_selection_is_not_charged_where_products_are_not_exact(ledger, select, plant):
    """Its runs try them, when it is charged already."""
    plant("trial of the products", lambda *_: False)
    with (
        pytest.raises(PrivacyError, match="products must be exact"),
        select().charging(),
    ):
        pytest.fail("the body ran")
    assert ledger.history == []


@pytest.mark.parametrize("run_mu", [0.5, math.inf])
def test_a_selection_states_what_its_runs_cost(ledger, select, run_mu):
    selection = Selection(run_mu=run_mu, eta=0.0, gamma=0.1, scored_on="holdout")
    with pytest.raises(PrivacyError, match="epsilon must be that of the best of runs"):
        select(selection=selection)
    assert ledger.history == []


def test_a_selection_is_stated_as_one(select):
    with pytest.raises(PrivacyError, match="part of its statement"):
        select(selection=None, accounting="exact", releases=make_statement().releases)


def test_a_selection_without_privacy_draws_anything(select):
    selection = Selection(run_mu=math.inf, eta=0.0, gamma=0.1, scored_on="public")
    with pytest.warns(PrivacyWarning, match="epsilon should be at most"):
        fit = select(selection=selection, epsilon=math.inf)
    fit._ledger = None
    plan = plan_releases([Query("sum", 1.0)], epsilon=math.inf)
    with fit.charging():
        assert fit.mechanism(plan).release("sum", SUM).noise_stddev == 0.0


def test_a_fit_warns_of_what_weakens_it(plan):
    with pytest.warns(PrivacyWarning, match="random_state") as caught:
        begin(Estimator(), plan, seed=3)
    assert len(caught) == 1
    with pytest.warns(PrivacyWarning, match="classes=None"):
        begin(Estimator(), plan, classes_read=True)


@pytest.mark.validation
@pytest.mark.parametrize("value", ["team.ledger", 1, True, {}])
def test_a_fit_has_a_ledger_or_none(plan, value):
    with pytest.raises(TypeError, match="ledger must be None or a PrivacyLedger"):
        begin(Estimator(value), plan)


def calls(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func).rpartition(".")[2]


def test_nothing_else_makes_a_mechanism_or_charges_a_ledger():
    """What goes around `private_fit` would draw before it is charged, or beside."""
    makers, chargers = set(), set()
    for file in (ROOT / "privfeat").rglob("*.py"):
        found, name = set(calls(file)), file.relative_to(ROOT / "privfeat").as_posix()
        if "GaussianMechanism" in found:
            makers.add(name)
        if "charge" in found or "charged" in found:
            chargers.add(name)
    assert makers == {"core/private_fit.py"}
    assert chargers == {"core/private_fit.py", "core/ledger/charging.py"}
    assert CORE.joinpath("private_fit.py").is_file()
