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

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.conversions import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    zcdp_epsilon,
)
from privfeat.core.accounting.plan import Query
from privfeat.core.accounting.pld import pld_epsilon
from privfeat.exceptions import UnsupportedEventError
from tests.core.plans import QUERY_SETS, SAMPLED, composed_mu, weighted

POISSON = {"accounting": "pld"}


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


@pytest.mark.parametrize("accounting", ["exact", "zcdp", "pld", "rdp"])
def test_rho_plan_spends_rho(queries, accounting):
    plan = plan_releases(queries, rho=0.2, accounting=accounting)
    assert composed_mu(plan) ** 2 / 2 == pytest.approx(0.2, rel=1e-9)
    assert composed_mu(plan) ** 2 / 2 <= 0.2
    exact = gaussian_epsilon(math.sqrt(0.4), 1e-5)
    assert exact <= plan.epsilon * (1 + 1e-9) <= zcdp_epsilon(0.2, 1e-5) * (1 + 2e-9)


@pytest.mark.parametrize("accounting", ["exact", "zcdp", "pld", "rdp"])
def test_noise_multiplier_plan_gives_it_to_every_release(queries, accounting):
    plan = plan_releases(queries, noise_multiplier=3.0, accounting=accounting)
    count = sum(query.count for query in queries)
    for release in plan.releases:
        assert release.noise_multiplier == pytest.approx(3.0, rel=1e-9)
        assert release.noise_multiplier >= 3.0
        expected = release.noise_multiplier * release.query.l2_sensitivity
        assert release.noise_stddev == expected
    exact = gaussian_epsilon(math.sqrt(count) / 3.0, 1e-5)
    assert plan.epsilon >= exact * (1 - 1e-8)  # of which most is the slack of delta


def test_plan_gives_equal_noise_multipliers_by_default(queries):
    plan = plan_releases(queries, epsilon=1.0)
    multipliers = [release.noise_multiplier for release in plan.releases]
    np.testing.assert_allclose(multipliers, multipliers[0], rtol=1e-12)


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


def test_plan_splits_a_querys_share_over_its_releases():
    queries = QUERY_SETS["steps"]
    plan = plan_releases(queries, rho=1.0, budget_split={"gram": 0.1, "gradient": 0.9})
    assert plan["gram"].noise_multiplier == pytest.approx(math.sqrt(0.5 / 0.1))
    assert plan["gradient"].noise_multiplier == pytest.approx(math.sqrt(15 / 0.9))


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


def test_sampled_plan_of_a_small_budget_costs_its_epsilon_and_no_more():
    """A loss distribution under much noise is small, so that it takes no time."""
    query = Query("gradient", 1.0, sampling_prob=0.5)
    plan = plan_releases([query], epsilon=0.1, **POISSON)
    assert 0.098 < plan.epsilon <= 0.1
    assert plan.epsilon == pld_epsilon(plan.event(), 1e-5)


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
