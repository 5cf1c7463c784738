"""Several fits under one charge: stated, charged once, each in its turn."""

from functools import partial

import numpy as np
import pytest

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.noise.keys import KeyStream
from privfeat.core.private_fit import private_fit
from privfeat.core.private_steps import private_steps
from privfeat.core.shares import shares_of_rho
from privfeat.core.sums.totals import ExactSum
from privfeat.exceptions import BudgetExceededError, PrivacyError, PrivacyWarning

SUM = ExactSum(np.zeros(2, np.int64), 2.0**-20)
QUERIES = {"a": [Query("sum", 1.0)], "b": [Query("sum", 2.0), Query("gram", 1.0)]}


class Whole:
    """What a charge of several fits needs of an estimator."""

    def __init__(self, ledger=None):
        self.ledger, self.steps_ = ledger, "of an earlier fit"


class One:
    """A step: draws its plan, a part of ``rho``."""

    ledger = None

    def __init__(self, name, plan):
        self.name, self.plan = name, plan

    def fit(self, part, plan=None, n_draws=1):
        self.ledger = part
        fit = private_fit(
            self,
            plan or self.plan,
            KeyStream(None),
            public=(),
            n_units=2,
            forget=(),
        )
        with fit.drawing() as mechanism:
            for query in QUERIES[self.name] * n_draws:
                mechanism.release(query.name, SUM)


@pytest.fixture
def whole():
    return plan_releases([Query("all", 1.0)], epsilon=0.5)


@pytest.fixture
def steps(whole):
    rhos = shares_of_rho(whole, {"a": 1.0, "b": 8.0})
    return {n: One(n, plan_releases(QUERIES[n], rho=rho)) for n, rho in rhos.items()}


def begin(whole, steps, ledger=None, seed=None):
    estimator = Whole(ledger)
    parts = {name: step.plan for name, step in steps.items()}
    options = {"public": ("a fact",), "n_units": 2, "forget": ("steps_",)}
    return estimator, private_steps(estimator, whole, parts, KeyStream(seed), **options)


def fit_in_turn(begun, steps, name):
    with begun.turn(name) as part:
        steps[name].fit(part)
    return part


def test_steps_are_charged_once_before_the_first_draws(ledger, whole, steps):
    estimator, begun = begin(whole, steps, ledger)
    assert ledger.history == []
    with begun.charging():
        assert not hasattr(estimator, "steps_")
        for name, step in steps.items():
            with begun.turn(name) as part:
                step.fit(part)
            assert len(ledger.history) == 1
            assert estimator.privacy_ == begun.statement
    (charge,) = ledger.history
    assert (charge.status, charge.estimator) == ("fitted", "Whole")
    assert charge.statement.epsilon == 0.5
    names = [release.name for release in charge.statement.releases]
    assert names == ["a.sum", "b.sum", "b.gram"]


def break_first(begun):
    with begun.turn("a"):
        raise ZeroDivisionError


def test_a_first_step_that_breaks_before_it_draws_costs_nothing(ledger, whole, steps):
    _, begun = begin(whole, steps, ledger)
    with pytest.raises(ZeroDivisionError), begun.charging():
        break_first(begun)
    assert ledger.history == []


def fit_then_break(begun, steps):
    fit_in_turn(begun, steps, "a")
    raise ZeroDivisionError


def test_steps_that_break_have_spent_the_whole(ledger, whole, steps):
    _, begun = begin(whole, steps, ledger)
    with pytest.raises(ZeroDivisionError) as caught, begun.charging():
        fit_then_break(begun, steps)
    assert "its budget is spent" in "".join(caught.value.__notes__)
    (charge,) = ledger.history
    assert charge.statement.epsilon == 0.5


def test_steps_draw_nothing_where_the_ledger_has_too_little(tmp_path, whole, steps):
    from privfeat import PrivacyLedger

    poor = PrivacyLedger(tmp_path / "poor", dataset="d", epsilon=0.4, delta=1e-5)
    _, begun = begin(whole, steps, poor)
    with pytest.raises(BudgetExceededError), begun.charging():
        pytest.fail("the body ran")


def test_steps_have_their_turn_in_their_order(whole, steps):
    _, begun = begin(whole, steps)
    with pytest.raises(PrivacyError, match="in their order"), begun.charging():
        with begun.turn("b"):
            pytest.fail("the turn was given")


def test_a_step_has_one_turn(whole, steps):
    _, begun = begin(whole, steps)
    with pytest.raises(PrivacyError, match="in their order"), begun.charging():
        list(map(partial(fit_in_turn, begun, steps), "aa"))


def test_a_step_must_use_its_turn(whole, steps):
    _, begun = begin(whole, steps)
    with pytest.raises(PrivacyError, match="'a' was not"), begun.charging():
        with begun.turn("a"):
            pass


def test_no_step_is_left_out(whole, steps):
    _, begun = begin(whole, steps)
    with pytest.raises(PrivacyError, match=r"left: \['b'\]"), begun.charging():
        with begun.turn("a") as part:
            steps["a"].fit(part)


def test_a_step_has_no_turn_outside_of_the_charge(whole, steps):
    _, begun = begin(whole, steps)
    with pytest.raises(PrivacyError, match="within `charging`"), begun.turn("a"):
        pytest.fail("the turn was given")


def test_a_step_has_no_turn_after_a_charge_that_broke(whole, steps):
    _, begun = begin(whole, steps)
    with pytest.raises(ZeroDivisionError), begun.charging():
        fit_then_break(begun, steps)
    with pytest.raises(PrivacyError, match="within `charging`"), begun.turn("b"):
        pytest.fail("the turn was given")


def fit_after_its_turn(begun, steps):
    kept = fit_in_turn(begun, steps, "a")
    kept.taken = False
    steps["a"].fit(kept)


def test_a_part_is_worth_nothing_after_its_turn(whole, steps):
    _, begun = begin(whole, steps)
    with pytest.raises(PrivacyError, match="in its turn"), begun.charging():
        fit_after_its_turn(begun, steps)


def test_a_step_draws_no_other_plan(whole, steps):
    _, begun = begin(whole, steps)
    dearer = plan_releases(QUERIES["a"], rho=1.0)
    with pytest.raises(PrivacyError, match="exactly what it has told"):
        with begun.charging(), begun.turn("a") as part:
            steps["a"].fit(part, dearer)


def test_a_step_draws_no_sum_twice(whole, steps):
    _, begun = begin(whole, steps)
    with pytest.raises(PrivacyError, match="as often as planned"):
        with begun.charging(), begun.turn("a") as part:
            steps["a"].fit(part, n_draws=2)


def test_the_whole_draws_nothing_by_itself(whole, steps):
    _, begun = begin(whole, steps)
    with begun._fit.charging(), pytest.raises(PrivacyError, match="has stated"):
        begun._fit.mechanism(whole)
    with pytest.raises(PrivacyError, match="draw one by one"):
        with begun._fit.drawing():
            pytest.fail("the body ran")


def test_steps_warn_once_of_what_weakens_the_whole(whole, steps):
    with pytest.warns(PrivacyWarning, match="random_state") as caught:
        begin(whole, steps, seed=3)
    assert len(caught) == 1
