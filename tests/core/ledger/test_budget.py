"""What is left of a budget: a fit of that size fits, and nothing larger."""

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfeat import PrivacyError
from privfeat.core.accounting.conversions import gaussian_epsilon
from privfeat.core.accounting.run_count import RunCount
from privfeat.core.accounting.selection import selection_epsilon
from privfeat.core.ledger.budget import new_budget, spent_of
from privfeat.core.ledger.room import left_of
from privfeat.core.statement.composition import compose
from privfeat.core.statement.selection import Selection
from tests.core.ledgers import make_statement

DELTA = 1e-5


def make_budget(epsilon=3.0, delta=DELTA, adjacency=None, unit=None):
    return new_budget("a", epsilon=epsilon, delta=delta, adjacency=adjacency, unit=unit)


def sampled():
    return make_statement(sampling_prob=0.1, noise_multiplier=2.0, accounting="pld")


def selected():
    runs = RunCount.from_mean(10.0, 0.0)
    return dataclasses.replace(
        make_statement(epsilon=1.0),
        epsilon=selection_epsilon(0.2, DELTA, runs),
        rho=None,
        mu=None,
        accounting="selection",
        selection=Selection(0.2, runs.eta, runs.gamma, "public"),
    )


def test_nothing_is_spent_at_first():
    budget = make_budget()
    assert dataclasses.astuple(spent_of(budget, [])) == (0.0, DELTA, 0.0)
    left = left_of(budget, [])
    assert (left.epsilon, left.delta) == (3.0, DELTA)


def test_gaussian_fits_are_composed_exactly():
    fits = [make_statement(epsilon=0.5), make_statement(rho=0.02, delta=1e-7)]
    spent = spent_of(make_budget(), fits)
    mu = math.hypot(*(fit.mu for fit in fits))
    assert spent.epsilon == pytest.approx(gaussian_epsilon(mu, DELTA), rel=1e-9)
    assert spent.rho == pytest.approx(mu**2 / 2, rel=1e-9)
    assert spent.rho >= mu**2 / 2


@pytest.mark.parametrize("other", [sampled, selected])
def test_other_fits_are_composed_as_compose_does(other):
    fits = [make_statement(epsilon=0.5), other()]
    spent = spent_of(make_budget(), fits)
    assert spent.epsilon == compose(fits, delta=DELTA).epsilon
    assert spent.rho is None


@settings(max_examples=40, deadline=None)
@given(
    epsilon=st.floats(0.01, 50.0),
    delta=st.sampled_from([1e-10, 1e-6, 1e-5, 0.01]),
    parts=st.lists(st.floats(1e-6, 0.6), max_size=6),
    accounting=st.sampled_from(["exact", "zcdp"]),
)
def test_one_fit_of_what_is_left_fits_and_a_larger_one_does_not(
    epsilon, delta, parts, accounting
):
    budget = make_budget(epsilon, delta)
    total = left_of(budget, []).rho
    fits = [make_statement(rho=total * part, delta=delta) for part in parts]
    left = left_of(budget, fits)

    def spent_with(**fit):
        more = make_statement(**fit, delta=delta)
        return spent_of(budget, [*fits, more]).epsilon

    if not left.epsilon:  # with a large delta a fit of hardly any epsilon has a rho
        assert spent_with(epsilon=epsilon * 1e-3) > epsilon
        return
    assert spent_with(epsilon=left.epsilon) <= epsilon
    assert spent_with(epsilon=left.epsilon, accounting=accounting) <= epsilon
    assert spent_with(rho=left.rho) <= epsilon
    assert spent_with(rho=left.rho * (1 + 1e-6)) > epsilon
    if fits:
        assert spent_with(epsilon=left.epsilon * (1 + 1e-6)) > epsilon


@pytest.mark.parametrize("n_parts", [3, 7, 10, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_what_is_left_may_be_cut_into_parts(epsilon, n_parts):
    budget = make_budget(epsilon)
    part = make_statement(rho=left_of(budget, []).rho / n_parts)
    assert spent_of(budget, [part] * n_parts).epsilon <= epsilon
    assert spent_of(budget, [part] * (n_parts + 1)).epsilon > epsilon


@pytest.mark.parametrize(
    "other", [pytest.param(sampled, marks=pytest.mark.slow), selected]
)
def test_what_is_left_beside_other_fits_fits(other):
    budget = make_budget(epsilon=4.0)
    fits = [other(), make_statement(epsilon=0.5)]
    left = left_of(budget, fits)
    assert 0.5 < left.epsilon < 4.0
    more = make_statement(epsilon=left.epsilon)
    assert spent_of(budget, [*fits, more]).epsilon <= 4.0
    more = make_statement(epsilon=left.epsilon * 1.01)
    assert spent_of(budget, [*fits, more]).epsilon > 4.0


def test_nothing_is_left_of_a_full_budget():
    budget = make_budget()
    left = left_of(budget, [make_statement(epsilon=3.0)])
    assert (left.epsilon, left.rho) == (0.0, 0.0)


def test_a_budget_without_numbers_is_none():
    assert make_budget(None, None) is None


@pytest.mark.validation
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("epsilon", x) for x in (0, -1.0, math.nan, math.inf, True, "1", None)),
        *(("epsilon", x) for x in (1e-9, 1e15)),
        *(("delta", x) for x in (0, 1.0, 1e-11, math.nan, math.inf, True, "1", None)),
        ("adjacency", "other"),
        ("adjacency", 1),
        ("unit", "image"),
    ],
)
def test_budget_refuses_a_wrong_number(name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        make_budget(**{name: value})


@pytest.mark.validation
@pytest.mark.parametrize("dataset", ["", "a" * 201, None, 1, ["a"]])
def test_budget_refuses_a_wrong_name(dataset):
    with pytest.raises(ValueError, match="dataset must be a name"):
        new_budget(dataset, epsilon=1.0, delta=1e-5, adjacency=None, unit=None)


def test_a_charge_that_was_lost_is_put_back_once(ledger):
    """A script that is run a second time would spend its budget again."""
    lost = dataclasses.replace(
        make_statement(epsilon=0.5), charge="0123456789abcdef" * 2
    )
    assert ledger.charge(lost, estimator="DPFC") == 1
    with pytest.raises(PrivacyError, match=r"be charged once, got .* of charge 1 of 1"):
        ledger.charge(lost, estimator="DPFC")
    (charge,) = ledger.history
    assert charge.statement == lost
