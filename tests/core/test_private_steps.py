"""Several fits under one charge: stated, charged once, each in its turn."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from privfeat import DPLeastSquares
from privfeat.audit import recording
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.noise.keys import KeyStream
from privfeat.core.private_fit import private_fit
from privfeat.core.private_steps import private_steps
from privfeat.core.shares import shares_of_rho
from privfeat.core.sums.totals import ExactSum
from privfeat.exceptions import BudgetExceededError, PrivacyError, PrivacyWarning
from tests.linear.replaying import check_sensitivity

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
        assert len(ledger.history) == 1
        assert estimator.privacy_ == begun.statement
        assert not hasattr(estimator, "steps_")
        for name, step in steps.items():
            with begun.turn(name) as part:
                step.fit(part)
    (charge,) = ledger.history
    assert (charge.status, charge.estimator) == ("fitted", "Whole")
    assert charge.statement.epsilon == 0.5
    names = [release.name for release in charge.statement.releases]
    assert names == ["a.sum", "b.sum", "b.gram"]


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
    with pytest.raises(PrivacyError, match="charged before"), begun.turn("a"):
        pytest.fail("the turn was given")


def test_a_step_has_no_turn_after_a_charge_that_broke(whole, steps):
    _, begun = begin(whole, steps)
    with pytest.raises(ZeroDivisionError), begun.charging():
        fit_then_break(begun, steps)
    with pytest.raises(PrivacyError, match="charged before"), begun.turn("b"):
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


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(5)
    return rng.normal(size=(40, 3)), rng.integers(0, 2, 40)


class Chain:
    """Two fits: the second on rows that the first one's coefficients make."""

    def __init__(self, adjacency, leak=False):
        self.adjacency, self.leak, self.ledger = adjacency, leak, None

    def fit(self, X, y):
        whole = plan_releases(
            [Query("all", 1.0)], epsilon=2.0, adjacency=self.adjacency
        )
        rhos = shares_of_rho(whole, {"first": 1.0, "second": 2.0})
        # a center would be a public one only, and sums are easier to read without
        made = {
            name: DPLeastSquares(
                rho=rho,
                adjacency=self.adjacency,
                classes=[0, 1],
                center=False,
                random_state=7,
            )
            for name, rho in rhos.items()
        }
        keys = KeyStream(7)
        with pytest.warns(PrivacyWarning):
            begun = private_steps(
                self,
                whole,
                {
                    "first": made["first"].planned(3),
                    "second": made["second"].planned(1),
                },
                keys,
                public=(),
                n_units=len(X),
                forget=(),
            )
        with begun.charging():
            with begun.turn("first") as part:
                made["first"].set_params(ledger=part).fit(X, y)
            rows = made["first"].decision_function(X)[:, None]
            if self.leak:  # a fault: rows that depend on all records
                rows = rows - X.sum()
            with begun.turn("second") as part:
                made["second"].set_params(ledger=part).fit(rows, y)
        self.steps = made
        return self


def split(chain, calls):
    """Return the statement and the calls of each step."""
    first, second = (chain.steps[n].privacy_ for n in ("first", "second"))
    place = sum(release.count for release in first.releases)
    assert {call.name.partition(".")[0] for call in calls[:place]} == {"first"}
    calls = [replace(call, name=call.name.partition(".")[2]) for call in calls]
    return [(first, calls[:place]), (second, calls[place:])]


def neighbours(X, y, adjacency):
    """Extreme records in the place of one, or none there."""
    for row in ([1e6, -1e6, 1e6], [0.0, 0.0, 0.0], [-5.0, 0.1, 3.0]):
        for label in (0, 1):
            if adjacency == "add_remove":
                yield np.vstack([X, row]), np.append(y, label)
            else:
                yield np.vstack([row, X[1:]]), np.append(label, y[1:])
    if adjacency == "add_remove":
        yield X[1:], y[1:]


def moves(adjacency, records, **options):
    chains = []
    with recording() as spy:
        spy.start()
        chain = Chain(adjacency, **options).fit(*records)
        calls = spy.calls
        for other in neighbours(*records, adjacency):
            spy.start(answers=calls)
            Chain(adjacency, **options).fit(*other)
            pairs = zip(split(chain, calls), split(chain, spy.calls), strict=True)
            chains += [(stated, one, two) for (stated, one), (_, two) in pairs]
    return chains


def check_all(moved):
    for statement, one, two in moved:
        check_sensitivity(statement, one, two)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_given_equal_earlier_releases_no_sum_of_a_step_moves_beyond_its_bound(
    records, adjacency
):
    check_all(moves(adjacency, records))


def test_the_check_notices_rows_that_follow_from_all_records(records):
    moved = moves("add_remove", records, leak=True)
    with pytest.raises(AssertionError):
        check_all(moved)
