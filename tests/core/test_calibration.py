import dataclasses
import math

import numpy as np
import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st

from privfeat.core import pld
from privfeat.core.accounting import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    zcdp_epsilon,
)
from privfeat.core.calibration import plan_releases
from privfeat.core.plan import Query
from privfeat.exceptions import UnsupportedEventError

QUERY_SETS = {
    "one": [Query("gradient", 0.3)],
    "steps": [Query("gram", 1.0), Query("gradient", 0.5, count=30)],
    "blocks": [
        Query("gram", 1.4, n_blocks=1),
        Query("class_sums", 2.0),
        Query("class_grams", 1.0, n_blocks=10),
    ],
}
SAMPLED = [Query("gradient", 1.0, count=5, sampling_prob=0.1)]
POISSON = {"accounting": "pld"}


@pytest.fixture(params=QUERY_SETS)
def queries(request):
    return QUERY_SETS[request.param]


def composed_mu(plan):
    """Gaussian DP of all releases together, from what will be drawn."""
    return math.sqrt(
        math.fsum(
            release.query.count
            * (release.query.l2_sensitivity / release.noise_stddev) ** 2
            for release in plan.releases
        )
    )


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-8, 1e-3])
def test_exact_plan_costs_its_epsilon_and_no_more(queries, epsilon, delta):
    plan = plan_releases(queries, epsilon=epsilon, delta=delta)
    mu = composed_mu(plan)
    assert gaussian_delta(mu, epsilon) <= delta
    assert gaussian_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-6)
    assert (plan.epsilon, plan.delta) == (epsilon, delta)
    assert plan.mu == pytest.approx(mu, rel=1e-9)
    assert plan.mu >= mu
    assert plan.rho == pytest.approx(mu**2 / 2, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_zcdp_plan_costs_its_epsilon_and_no_more(queries, epsilon):
    plan = plan_releases(queries, epsilon=epsilon, accounting="zcdp")
    rho = composed_mu(plan) ** 2 / 2
    assert zcdp_epsilon(rho, 1e-5) <= epsilon * (1 + 1e-11)
    assert zcdp_epsilon(rho, 1e-5) == pytest.approx(epsilon, rel=1e-9)


def test_pld_plan_costs_its_epsilon_and_no_more():
    queries = QUERY_SETS["steps"]
    plan = plan_releases(queries, epsilon=2.0, accounting="pld")
    assert gaussian_epsilon(composed_mu(plan), 1e-5) <= 2.0
    assert gaussian_epsilon(composed_mu(plan), 1e-5) == pytest.approx(2.0, rel=1e-2)


@pytest.mark.parametrize("accounting", ["exact", "zcdp", "pld"])
def test_rho_plan_spends_rho(queries, accounting):
    plan = plan_releases(queries, rho=0.2, accounting=accounting)
    assert composed_mu(plan) ** 2 / 2 == pytest.approx(0.2, rel=1e-9)
    assert composed_mu(plan) ** 2 / 2 <= 0.2
    exact = gaussian_epsilon(math.sqrt(0.4), 1e-5)
    assert exact <= plan.epsilon * (1 + 1e-9) <= zcdp_epsilon(0.2, 1e-5) * (1 + 2e-9)


@pytest.mark.parametrize("accounting", ["exact", "zcdp", "pld"])
def test_noise_multiplier_plan_gives_it_to_every_release(queries, accounting):
    plan = plan_releases(queries, noise_multiplier=3.0, accounting=accounting)
    count = sum(query.count for query in queries)
    for release in plan.releases:
        assert release.noise_multiplier == pytest.approx(3.0, rel=1e-9)
        assert release.noise_multiplier >= 3.0
        expected = release.noise_multiplier * release.query.l2_sensitivity
        assert release.noise_stddev == expected
    exact = gaussian_epsilon(math.sqrt(count) / 3.0, 1e-5)
    assert plan.epsilon >= exact * (1 - 1e-9)


def test_plan_gives_equal_noise_multipliers_by_default(queries):
    plan = plan_releases(queries, epsilon=1.0)
    multipliers = [release.noise_multiplier for release in plan.releases]
    np.testing.assert_allclose(multipliers, multipliers[0], rtol=1e-12)


def weighted(queries, weights):
    pairs = zip(queries, weights, strict=True)
    return [dataclasses.replace(query, weight=weight) for query, weight in pairs]


WEIGHTS = st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3)


@given(
    weights=WEIGHTS,
    budget=st.sampled_from(
        [
            {"epsilon": 0.7},
            {"epsilon": 0.7, "accounting": "zcdp"},
            {"rho": 0.3},
            {"noise_multiplier": 4.0},
        ]
    ),
)
def test_plan_splits_rho_by_count_and_weight(weights, budget):
    """And spends the budget, no more: the squares of all releases sum to mu^2."""
    first, *others = QUERY_SETS["blocks"]
    queries = weighted([dataclasses.replace(first, count=7), *others], weights)
    plan = plan_releases(queries, **budget)
    total = math.fsum(query.count * query.weight for query in queries)
    for query, release in zip(queries, plan.releases, strict=True):
        assert release.query is query
        rho = query.count / (2 * release.noise_multiplier**2)
        share = query.count * query.weight / total
        assert rho / plan.rho == pytest.approx(share, rel=1e-9)
    mu = composed_mu(plan)
    if "rho" in budget:
        expected = math.sqrt(2.0 * 0.3)
    elif "noise_multiplier" in budget:
        expected = math.sqrt(total) / 4.0
    elif "accounting" in budget:
        assert zcdp_epsilon(mu**2 / 2, 1e-5) <= 0.7 * (1 + 1e-11)
        expected = plan.mu
    else:
        expected = gaussian_mu(0.7, 1e-5)
    assert mu == pytest.approx(expected, rel=1e-6)
    assert mu <= expected * (1 + 1e-12)
    assert mu <= plan.mu
    exact = gaussian_epsilon(mu, 1e-5)
    assert exact <= plan.epsilon * (1 + 1e-9)


@given(weights=WEIGHTS)
def test_plan_gives_a_release_its_noise_multiplier_by_its_weight(weights):
    queries = weighted(QUERY_SETS["blocks"], weights)
    plan = plan_releases(queries, noise_multiplier=3.0)
    for query, release in zip(queries, plan.releases, strict=True):
        expected = 3.0 / math.sqrt(query.weight)
        assert release.noise_multiplier == pytest.approx(expected, rel=1e-9)
        assert release.noise_multiplier >= expected * (1 - 1e-12)


@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 0.1}])
@pytest.mark.parametrize("weight", [1e-6, 1.0, 3.0])
def test_plan_does_not_depend_on_a_weight_that_all_share(queries, weight, budget):
    """As before there were weights: every release gets ``sqrt(count) / mu``."""
    count = sum(query.count for query in queries)
    plan = plan_releases(weighted(queries, [weight] * len(queries)), **budget)
    mu = gaussian_mu(1.0, 1e-5) if "epsilon" in budget else math.sqrt(0.2)
    for release in plan.releases:
        assert release.noise_multiplier == pytest.approx(math.sqrt(count) / mu)


def test_plan_ignores_weights_beside_a_split():
    queries, split = QUERY_SETS["steps"], {"gram": 0.1, "gradient": 0.9}
    found = plan_releases(weighted(queries, [5.0, 0.1]), budget_split=split)
    expected = plan_releases(queries, budget_split=split)
    assert [release.noise_multiplier for release in found.releases] == [
        release.noise_multiplier for release in expected.releases
    ]


def test_sampled_plan_divides_noise_multipliers_by_the_root_of_weights():
    queries = [Query("feature_mean", 1.0, weight=0.04), *SAMPLED]
    plan = plan_releases(queries, noise_multiplier=1.5, **POISSON)
    multipliers = [release.noise_multiplier for release in plan.releases]
    assert multipliers == pytest.approx([7.5, 1.5], rel=1e-12)
    event = ComposedDpEvent(
        [
            GaussianDpEvent(7.5),
            SelfComposedDpEvent(PoissonSampledDpEvent(0.1, GaussianDpEvent(1.5)), 5),
        ]
    )
    expected = PLDAccountant().compose(event).get_epsilon(1e-5)
    assert plan.epsilon == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_sampled_plan_with_weights_costs_its_epsilon_and_no_more():
    """Every search step is an accounting run: one step, sampled often."""
    queries = [
        Query("feature_mean", 1.0, weight=0.04),
        Query("gradient", 1.0, sampling_prob=0.5),
    ]
    plan = plan_releases(queries, epsilon=2.0, **POISSON)
    one, two = (release.noise_multiplier for release in plan.releases)
    assert one == pytest.approx(5.0 * two, rel=1e-12)
    other = PLDAccountant().compose(plan.event()).get_epsilon(1e-5)
    assert other == pytest.approx(plan.epsilon, rel=1e-9)
    assert 1.96 < plan.epsilon <= 2.0


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


def test_plan_splits_a_querys_share_over_its_releases():
    queries = QUERY_SETS["steps"]
    plan = plan_releases(queries, rho=1.0, budget_split={"gram": 0.1, "gradient": 0.9})
    assert plan["gram"].noise_multiplier == pytest.approx(math.sqrt(0.5 / 0.1))
    assert plan["gradient"].noise_multiplier == pytest.approx(math.sqrt(15 / 0.9))


def test_plan_defaults_to_epsilon_one(queries):
    assert plan_releases(queries).epsilon == 1.0


def test_plan_without_privacy_has_no_noise(queries):
    plan = plan_releases(queries, epsilon=math.inf)
    assert not plan.private
    assert plan.epsilon == plan.rho == plan.mu == math.inf
    assert all(release.noise_stddev == 0.0 for release in plan.releases)


def test_plan_does_not_depend_on_the_adjacency(queries):
    """The sensitivities already do: nothing may be doubled twice."""
    one, two = (
        plan_releases(queries, epsilon=1.0, adjacency=adjacency)
        for adjacency in ("add_remove", "replace_one")
    )
    assert one.releases == two.releases
    assert one.mu == two.mu


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("accountant", [PLDAccountant, RdpAccountant])
def test_plan_event_agrees_with_dp_accounting(queries, epsilon, accountant):
    plan = plan_releases(queries, epsilon=epsilon)
    other = accountant().compose(plan.event()).get_epsilon(1e-5)
    if accountant is PLDAccountant:
        assert other == pytest.approx(epsilon, rel=5e-3, abs=1e-3)
    else:
        assert epsilon * 0.95 < other < epsilon * 1.6


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


@pytest.mark.slow
def test_sampled_plan_costs_its_epsilon_and_no_more():
    plan = plan_releases(SAMPLED, epsilon=1.0, **POISSON)
    (release,) = plan.releases
    multiplier = release.noise_multiplier
    other = PLDAccountant().compose(plan.event()).get_epsilon(1e-5)
    assert plan.epsilon <= 1.0
    assert other == pytest.approx(plan.epsilon, rel=1e-9)
    assert plan.epsilon > 0.98
    assert plan.rho is plan.mu is None
    unsampled = math.sqrt(5) / gaussian_mu(1.0, 1e-5)
    assert multiplier < unsampled / 2


def test_sampled_plan_with_a_noise_multiplier_reports_its_cost():
    plan = plan_releases(SAMPLED, noise_multiplier=1.5, **POISSON)
    other = PLDAccountant().compose(plan.event()).get_epsilon(1e-5)
    assert plan.epsilon == pytest.approx(other, rel=1e-9)
    assert plan.releases[0].noise_multiplier == 1.5


@pytest.mark.parametrize(
    "options",
    [
        {"accounting": "exact"},
        {"accounting": "zcdp"},
        {**POISSON, "adjacency": "replace_one"},
        {**POISSON, "rho": 0.1},
        {**POISSON, "budget_split": {"gradient": 1.0}},
    ],
)
def test_sampled_plan_refuses_what_it_cannot_account(options):
    with pytest.raises(UnsupportedEventError, match="sampled records must use"):
        plan_releases(SAMPLED, **options)


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
    ("value", "error"), [("", ValueError), ("rdp", ValueError), (None, TypeError)]
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


def test_plan_refuses_a_budget_whose_epsilon_the_accountant_cannot_find(
    queries, monkeypatch
):
    monkeypatch.setattr(pld, "pld_epsilon", lambda event, delta: math.inf)
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
