import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfeat.core.accounting.calibration import plan_releases
from privfeat.exceptions import UnsupportedEventError
from tests.core.plans import QUERY_SETS, SAMPLED, composed_mu, weighted

POISSON = {"accounting": "pld"}


def test_plan_ignores_weights_beside_a_split():
    queries, split = QUERY_SETS["steps"], {"gram": 0.1, "gradient": 0.9}
    found = plan_releases(weighted(queries, [5.0, 0.1]), budget_split=split)
    expected = plan_releases(queries, budget_split=split)
    assert [release.noise_multiplier for release in found.releases] == [
        release.noise_multiplier for release in expected.releases
    ]


@given(
    shares=st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3),
    budget=st.sampled_from([{"epsilon": 0.7}, {"rho": 0.3}]),
)
def test_plan_splits_rho_as_asked(shares, budget):
    queries = QUERY_SETS["blocks"]
    split = {
        query.name: share / sum(shares)
        for query, share in zip(queries, shares, strict=True)
    }
    plan = plan_releases(queries, budget_split=split, **budget)
    for release in plan.releases:
        rho = release.query.count / (2 * release.noise_multiplier**2)
        assert rho / plan.rho == pytest.approx(split[release.query.name], rel=1e-6)
    assert composed_mu(plan) <= plan.mu


def test_plan_defaults_to_epsilon_one(queries):
    assert plan_releases(queries).epsilon == 1.0


def test_plan_without_privacy_has_no_noise(queries):
    plan = plan_releases(queries, epsilon=math.inf)
    assert not plan.private
    assert plan.epsilon == plan.rho == plan.mu == math.inf
    assert all(release.noise_stddev == 0.0 for release in plan.releases)


@pytest.mark.parametrize(
    "value", [4, np.int64(4), np.float64(4.0), np.float32(4.0), np.float16(4.0)]
)
@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.validation
def test_plan_does_not_depend_on_the_type_of_the_noise_multiplier(value, sampled):
    """dp-accounting reports 1.21 for 8.03 with an integer under Poisson sampling."""
    queries, options = (SAMPLED, POISSON) if sampled else (QUERY_SETS["steps"], {})
    plan = plan_releases(queries, noise_multiplier=value, **options)
    assert plan == plan_releases(queries, noise_multiplier=4.0, **options)


@pytest.mark.parametrize("name", ["epsilon", "rho"])
@pytest.mark.parametrize("value", [2, np.int64(2), np.float32(2.0), np.float16(2.0)])
@pytest.mark.validation
def test_plan_does_not_depend_on_the_type_of_the_budget(queries, name, value):
    plan = plan_releases(queries, **{name: value})
    assert plan == plan_releases(queries, **{name: 2.0})


def test_a_split_that_sums_to_a_little_more_than_one_buys_no_more():
    split = {"gram": 0.5 + 4e-10, "gradient": 0.5 + 4e-10}
    plan = plan_releases(QUERY_SETS["steps"], rho=1.0, budget_split=split)
    spent = [r.query.count / (2 * r.noise_multiplier**2) for r in plan.releases]
    assert math.fsum(spent) <= 1.0 + 1e-12


@pytest.mark.validation
@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("epsilon", "rho"),
        ("epsilon", "noise_multiplier"),
        ("rho", "noise_multiplier"),
    ],
)
def test_plan_refuses_two_budgets(queries, one, two):
    with pytest.raises(ValueError, match=f"got {one} and {two}"):
        plan_releases(queries, **{one: 1.0, two: 1.0})


@pytest.mark.validation
@pytest.mark.parametrize("name", ["epsilon", "rho", "noise_multiplier", "delta"])
@pytest.mark.parametrize("value", [0, 0.0, -1.0, math.nan, -math.inf])
def test_plan_refuses_a_budget_outside_its_range(queries, name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        plan_releases(queries, **{name: value})


@pytest.mark.validation
@pytest.mark.parametrize("name", ["rho", "noise_multiplier", "delta"])
def test_plan_refuses_an_infinite_budget_that_is_no_epsilon(queries, name):
    with pytest.raises(ValueError, match=f"{name} must be"):
        plan_releases(queries, **{name: math.inf})


@pytest.mark.validation
@pytest.mark.parametrize("name", ["epsilon", "rho", "noise_multiplier", "delta"])
@pytest.mark.parametrize("value", [True, "1", [1.0], np.array([1.0]), 1j])
def test_plan_refuses_a_budget_that_is_no_number(queries, name, value):
    with pytest.raises(TypeError, match=f"{name} must be"):
        plan_releases(queries, **{name: value})


@pytest.mark.validation
@pytest.mark.parametrize("name", ["accounting", "adjacency"])
@pytest.mark.parametrize(
    ("value", "error"), [("", ValueError), ("rpd", ValueError), (None, TypeError)]
)
def test_plan_refuses_an_unknown_choice(queries, name, value, error):
    with pytest.raises(error, match=f"{name} must be"):
        plan_releases(queries, **{name: value})


@pytest.mark.validation
@pytest.mark.parametrize(
    ("split", "error"),
    [
        ({"gram": 1.0}, ValueError),
        ({"gram": 0.5, "gradient": 0.5, "other": 0.0}, ValueError),
        ({"gram": 0.5, "gradient": 0.6}, ValueError),
        ({"gram": 0.0, "gradient": 1.0}, ValueError),
        ({"gram": -0.5, "gradient": 1.5}, ValueError),
        ({"gram": math.nan, "gradient": 1.0}, ValueError),
        ({"gram": True, "gradient": 1.0}, TypeError),
        ([0.5, 0.5], TypeError),
        (0.5, TypeError),
    ],
)
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_plan_refuses_a_wrong_split(split, error, epsilon):
    with pytest.raises(error, match="budget_split"):
        plan_releases(QUERY_SETS["steps"], budget_split=split, epsilon=epsilon)


@pytest.mark.validation
def test_plan_refuses_a_split_of_a_noise_multiplier():
    split = {"gram": 0.5, "gradient": 0.5}
    with pytest.raises(ValueError, match="budget_split must be None"):
        plan_releases(QUERY_SETS["steps"], noise_multiplier=1.0, budget_split=split)


@pytest.mark.validation
@pytest.mark.parametrize(
    "budget",
    [
        {"epsilon": 1e-9},
        {"rho": 1e-15},
        {"rho": 1e13},
        {"noise_multiplier": 1e-6},
        {"noise_multiplier": 1e7},
    ],
)
def test_plan_refuses_a_budget_no_noise_level_meets(budget):
    with pytest.raises(ValueError, match=f"(?s){next(iter(budget))}"):
        plan_releases(QUERY_SETS["steps"], **budget)


def test_plan_refuses_a_budget_whose_epsilon_the_accountant_cannot_find(queries, plant):
    plant("epsilon by PLD", lambda event, delta: math.inf)
    with pytest.raises(UnsupportedEventError, match="finite epsilon"):
        plan_releases(queries, noise_multiplier=1.0, accounting="pld")


@pytest.mark.validation
@pytest.mark.parametrize(
    ("queries", "delta"),
    [(QUERY_SETS["one"], 9.9e-11), (SAMPLED, 9.9e-10), (SAMPLED, 1e-10)],
)
def test_plan_refuses_a_delta_that_noise_or_accountant_cannot_keep(queries, delta):
    with pytest.raises(ValueError, match="delta must be in"):
        plan_releases(queries, noise_multiplier=1.0, delta=delta, **POISSON)


@pytest.mark.parametrize(("queries", "delta"), [(QUERY_SETS["one"], 1e-10)])
def test_plan_takes_the_smallest_delta_that_they_can(queries, delta):
    assert plan_releases(queries, noise_multiplier=1.0, delta=delta).delta == delta
