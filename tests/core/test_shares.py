"""Parts of one budget cost no more than the whole, by the noise that they have."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.conversions import gaussian_epsilon
from privfeat.core.accounting.plan import Query
from privfeat.core.shares import joined_plans, shares_of_rho
from privfeat.exceptions import PrivacyError, UnsupportedEventError


def whole_of(**budget):
    return plan_releases([Query("all", 1.0)], **budget)


def parts_of(whole, weights, **options):
    options = {"adjacency": whole.adjacency} | options
    return {
        name: plan_releases(
            [Query("sum", 1.0, count=2), Query("gram", 3.0, weight=0.1)],
            rho=rho,
            **options,
        )
        for name, rho in shares_of_rho(whole, weights).items()
    }


@given(
    epsilon=st.floats(0.1, 50.0),
    weights=st.lists(st.floats(0.01, 100.0), min_size=1, max_size=6),
)
def test_joined_plans_cost_what_their_noise_costs_and_no_more(epsilon, weights):
    whole = whole_of(epsilon=epsilon)
    named = {f"s{place}": weight for place, weight in enumerate(weights)}
    joined = joined_plans(whole, parts_of(whole, named))
    mu = math.sqrt(
        math.fsum(r.query.count / r.noise_multiplier**2 for r in joined.releases)
    )
    assert mu <= joined.mu <= mu * (1.0 + 1e-8)
    assert joined.epsilon == epsilon >= gaussian_epsilon(mu, joined.delta) - 1e-9
    assert joined.epsilon <= gaussian_epsilon(mu, joined.delta) * (1.0 + 1e-6)


def test_joined_plans_name_the_step_of_each_release():
    whole = whole_of(rho=0.3)
    joined = joined_plans(whole, parts_of(whole, {"a": 1, "b": 2}))
    assert [one.query.name for one in joined.releases] == [
        *("a.sum", "a.gram", "b.sum", "b.gram")
    ]


def test_shares_follow_the_weights():
    rhos = shares_of_rho(whole_of(rho=0.9), {"a": 1, "b": 8})
    assert rhos["b"] == pytest.approx(8 * rhos["a"])
    assert 0.9 * (1.0 - 1e-8) < sum(rhos.values()) < 0.9


@pytest.mark.validation
@pytest.mark.parametrize("weight", [0, -1.0, math.nan, math.inf, "1", True, None])
def test_shares_must_be_positive(weight):
    with pytest.raises((TypeError, ValueError), match=r"shares\['a'\]"):
        shares_of_rho(whole_of(rho=0.3), {"a": weight, "b": 1.0})


def test_joined_plans_refuse_parts_that_cost_more():
    whole = whole_of(epsilon=1.0)
    part = plan_releases([Query("sum", 1.0)], epsilon=1.0 + 1e-6)
    with pytest.raises(PrivacyError, match="no more than the whole"):
        joined_plans(whole, {"a": part})


def test_joined_plans_accept_a_part_that_costs_the_whole():
    whole = whole_of(noise_multiplier=2.0)
    joined = joined_plans(whole, {"a": whole})
    assert (joined.epsilon, joined.mu) == (whole.epsilon, whole.mu)


def test_joined_plans_believe_the_noise_and_not_the_words_of_a_part():
    whole = whole_of(epsilon=1.0)
    part = plan_releases([Query("sum", 1.0)], epsilon=2.0)
    lies = replace(part, epsilon=0.1, mu=0.01, rho=0.00005)
    with pytest.raises(PrivacyError, match="no more than the whole"):
        joined_plans(whole, {"a": lies})


def test_joined_plans_refuse_other_neighbours():
    whole = whole_of(epsilon=1.0)
    parts = parts_of(whole, {"a": 1.0}, adjacency="replace_one")
    with pytest.raises(PrivacyError, match="its neighbours"):
        joined_plans(whole, parts)


def test_joined_plans_refuse_a_part_without_noise():
    whole = whole_of(epsilon=1.0)
    free = plan_releases([Query("sum", 1.0)], epsilon=math.inf)
    with pytest.raises(PrivacyError, match="with noise"):
        joined_plans(whole, parts_of(whole, {"a": 1.0}) | {"b": free})


def test_joined_plans_refuse_sampled_records():
    whole = whole_of(epsilon=1.0)
    sampled = plan_releases(
        [Query("sum", 1.0, sampling_prob=0.5)], noise_multiplier=9.0, accounting="rdp"
    )
    with pytest.raises(UnsupportedEventError, match="sampling_prob=1"):
        joined_plans(whole, {"a": sampled})
    with pytest.raises(UnsupportedEventError, match="sampled"):
        shares_of_rho(sampled, {"a": 1.0})


def test_joined_plans_without_privacy_have_no_noise():
    whole = whole_of(epsilon=math.inf)
    free = plan_releases([Query("sum", 1.0)], epsilon=math.inf)
    joined = joined_plans(whole, {"a": free, "b": free})
    assert joined.epsilon == math.inf
    assert not joined.private
