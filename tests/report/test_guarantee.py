import math

import numpy as np
import pytest
from scipy import stats

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.conversions import gaussian_delta
from privfeat.core.accounting.plan import Query
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.report.guarantee import (
    epsilon_delta_curve,
    in_words,
    membership_tradeoff,
    several_records,
)
from tests.report.conftest import state


def test_tradeoff_is_that_of_the_likelihood_ratio_test(statement):
    """Two Gaussians ``mu`` apart: the threshold test is the best there is."""
    thresholds = np.linspace(-4, 4, 50)
    false, true = stats.norm.sf(thresholds), stats.norm.sf(thresholds - statement.mu)
    assert membership_tradeoff(statement, false) == pytest.approx(true)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_tradeoff_respects_epsilon_and_delta(epsilon):
    """The exact curve lies under the two lines of every (epsilon, delta) on it."""
    statement = state(epsilon=epsilon)
    rates = np.linspace(0, 1, 201)
    reached = membership_tradeoff(statement, rates)
    assert np.all(reached >= rates)
    assert np.all(np.diff(reached) >= 0)
    for e, d in zip(*epsilon_delta_curve(statement), strict=True):
        assert np.all(reached <= np.exp(e) * rates + d + 1e-9)
        assert np.all(1 - rates <= np.exp(e) * (1 - reached) + d + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("noise_multiplier", [0.8, 2.0])
def test_tradeoff_of_sampled_records_bounds_the_best_attack(noise_multiplier):
    """On one step the likelihood ratio is monotone: thresholds are the best attacks."""
    q, query = 0.3, Query("gradient", 1.0, sampling_prob=0.3)
    plan = plan_releases(
        [query], noise_multiplier=noise_multiplier, delta=1e-6, accounting="pld"
    )
    statement = PrivacyStatement.from_plan(plan, public=(), seeded=False)
    assert statement.mu is None
    thresholds = np.linspace(-6, 6, 200)
    false = stats.norm.sf(thresholds, scale=noise_multiplier)
    moved = stats.norm.sf(thresholds, loc=1, scale=noise_multiplier)
    true = (1 - q) * false + q * moved
    bound = membership_tradeoff(statement, false)
    assert np.all(true <= bound)
    assert np.all(bound - true < 0.15)  # it bounds attacks on removals as well
    # the stated pair alone says less
    e, d = statement.epsilon, statement.delta
    alone = np.minimum(np.exp(e) * false + d, 1 - np.exp(-e) * (1 - d - false))
    assert np.all(bound <= alone)
    assert np.any(bound < alone - 0.01)


@pytest.mark.parametrize("unprotected", [{"epsilon": math.inf}, {"seeded": True}])
def test_without_privacy_an_attack_always_works(unprotected):
    assert np.all(membership_tradeoff(state(**unprotected), [0.0, 0.5]) == 1)


def test_curve_holds_the_stated_pair(statement):
    epsilons, deltas = epsilon_delta_curve(statement)
    assert len(epsilons) > 20
    assert np.all(np.diff(deltas) < 0)
    assert np.interp(1.0, epsilons, np.log(deltas)) == pytest.approx(
        math.log(1e-6), abs=0.1
    )
    assert deltas[3] == gaussian_delta(statement.mu, epsilons[3])


def test_curve_of_sampled_records_holds_the_stated_pair():
    statement = state(sampling_prob=0.1, epsilon=None, noise_multiplier=2.0)
    epsilons, deltas = epsilon_delta_curve(statement)
    assert np.all(np.diff(epsilons) <= 0)
    near = np.interp(math.log(1e-6), np.log(deltas), epsilons)
    assert near == pytest.approx(statement.epsilon, rel=0.01)
    assert np.count_nonzero(epsilons == 0.0) == 1


def test_no_curve_without_privacy():
    epsilons, _ = epsilon_delta_curve(state(epsilon=math.inf))
    assert len(epsilons) == 0


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({}, "If one record was left out"),
        ({"adjacency": "replace_one"}, "If one record was replaced"),
        ({"unit": "user"}, "If all records of one user were left out"),
        ({"epsilon": math.inf}, "no privacy guarantee"),
        ({"seeded": True}, "not private against anyone who knows"),
    ],
)
def test_words_fit_the_statement(budget, words):
    assert words in " ".join(in_words(state(**budget)))


def test_words_never_round_a_risk_down():
    for epsilon in (0.1, 0.5, 1.0, 3.0, 8.0):
        statement = state(epsilon=epsilon)
        first, second, *_ = in_words(statement)
        factor = float(first.split("more than ")[1].split(" times")[0].replace(",", ""))
        assert math.exp(statement.epsilon) <= factor <= 1.02 * math.exp(epsilon)
        shown = float(second.split("recognizes at most ")[1].split(" in")[0])
        assert shown >= 100 * membership_tradeoff(statement, 0.01)


def test_words_call_a_weak_guarantee_weak():
    weak = "weak guarantee"
    assert weak not in " ".join(in_words(state(epsilon=1.0)))
    assert weak in " ".join(in_words(state(epsilon=30.0)))
    assert "exp(" in in_words(state(epsilon=100.0))[0]


@pytest.mark.parametrize("n_records", [2, 5, 10])
def test_several_records_have_the_epsilon_of_as_many_moves(n_records):
    """The sum moves by so many sensitivities: a Gaussian of that much larger ``mu``."""
    statement = state()
    epsilon, delta = several_records(statement, n_records)
    mu = n_records * statement.mu
    exact = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(
        -mu / 2 - epsilon / mu
    )
    assert exact == pytest.approx(delta, rel=1e-6)
    assert epsilon > n_records * statement.epsilon


def test_several_records_of_a_sampled_fit_compose_the_stated_pair():
    """By hand, from one neighbour to the next: delta, then e^epsilon of it more."""
    statement = state(sampling_prob=0.1, epsilon=None, noise_multiplier=2.0)
    delta = 0.0
    for _ in range(3):
        delta = statement.delta + math.exp(statement.epsilon) * delta
    found = several_records(statement, 3)
    assert found[0] == pytest.approx(3 * statement.epsilon)
    assert delta <= found[1] <= delta * (1 + 1e-9)


def test_several_records_without_privacy_have_none():
    assert several_records(state(epsilon=math.inf), 2)[0] == math.inf
    assert several_records(state(), 1) == (1.0, 1e-6)
