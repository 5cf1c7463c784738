import math

import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    UnsupportedDpEvent,
)
from dp_accounting.pld import PLDAccountant

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.conversions import gaussian_epsilon, gaussian_mu
from privfeat.core.accounting.plan import Query
from privfeat.core.accounting.pld import pld_epsilon, pld_epsilons, pld_noise_multiplier
from privfeat.exceptions import UnsupportedEventError


def test_pld_epsilon_of_a_composition_adds_mu_squared():
    event = SelfComposedDpEvent(GaussianDpEvent(4.0), 4)
    exact = gaussian_epsilon(0.5, 1e-6)
    assert exact <= pld_epsilon(event, 1e-6) <= exact * 1.01


@pytest.mark.slow
def test_pld_epsilon_falls_with_the_sampling_probability():
    def cost(probability):
        event = PoissonSampledDpEvent(probability, GaussianDpEvent(1.0))
        return pld_epsilon(SelfComposedDpEvent(event, 10), 1e-6)

    assert cost(0.01) < cost(0.1) < cost(0.9)


@pytest.mark.slow
def test_pld_epsilons_are_those_of_each_delta():
    event = SelfComposedDpEvent(PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0)), 10)
    deltas = [1e-5, 0.9]
    found = pld_epsilons(event, deltas)
    assert found == [pld_epsilon(event, delta) for delta in deltas]
    assert found == sorted(found, reverse=True)
    assert found[-1] == 0.0
    with pytest.raises(ValueError, match="delta must be"):
        pld_epsilons(event, [1e-5, 0.0])


def test_pld_epsilon_refuses_an_unknown_event():
    with pytest.raises(UnsupportedEventError, match="event must be supported"):
        pld_epsilon(UnsupportedDpEvent(), 1e-5)


@pytest.mark.parametrize("divergence", [math.nan, -1.0])
def test_pld_epsilon_fails_closed(monkeypatch, divergence):
    monkeypatch.setattr(PLDAccountant, "get_epsilon", lambda *_: divergence)
    assert pld_epsilon(GaussianDpEvent(1.0), 1e-5) == math.inf


@pytest.mark.parametrize(
    "epsilon", [0.05, 0.3, 3.0, pytest.param(20.0, marks=pytest.mark.slow)]
)
def test_pld_noise_multiplier_meets_the_budget(epsilon):
    noise_multiplier, cost = pld_noise_multiplier(GaussianDpEvent, epsilon, 1e-5)
    assert pld_epsilon(GaussianDpEvent(noise_multiplier), 1e-5) == cost <= epsilon
    assert pld_epsilon(GaussianDpEvent(noise_multiplier / 1.001), 1e-5) > epsilon
    assert noise_multiplier == pytest.approx(1 / gaussian_mu(epsilon, 1e-5), rel=1e-2)
    assert noise_multiplier >= 1 / gaussian_mu(epsilon, 1e-5)


@pytest.mark.parametrize(
    ("cost_at", "found"),
    [
        (lambda noise: 0.7 / noise, 0.7),
        (lambda noise: 300.0 / noise, 300.0),
        (lambda noise: 9.0 / noise**4, math.sqrt(3.0)),
        (lambda noise: math.inf if noise < 2e5 else 0.5, 2e5),  # a cliff
        (lambda noise: 3.0 if noise < 0.02 else 0.0, 0.02),
        (lambda noise: 0.0, 1e-3),  # the least that is tried
    ],
)
def test_pld_noise_multiplier_takes_the_affordable_end(plant, cost_at, found):
    """Within a relative 1e-3, of any curve that falls, in few evaluations."""
    tried = []

    def cost(noise, delta):
        tried.append(noise)
        return cost_at(noise)

    plant("epsilon by PLD", cost)
    noise_multiplier, spent = pld_noise_multiplier(lambda noise: noise, 1.0, 1e-5)
    assert spent == cost_at(noise_multiplier) <= 1.0
    assert noise_multiplier == pytest.approx(found, rel=1e-3 if found > 1e-3 else 0.3)
    assert noise_multiplier in tried
    assert len(set(tried)) == len(tried) <= 40


def test_pld_noise_multiplier_takes_few_evaluations(plant):
    """Each takes up to a second: bisection took twelve."""
    tried = []

    def cost(event, delta):
        tried.append(event)
        return pld_epsilon(event, delta)

    plant("epsilon by PLD", cost)
    pld_noise_multiplier(GaussianDpEvent, 3.0, 1e-5)
    assert len(tried) <= 6


def test_pld_noise_multiplier_refuses_an_impossible_budget():
    with pytest.raises(ValueError, match="noise multiplier of at most 1e6"):
        pld_noise_multiplier(lambda _: NonPrivateDpEvent(), 0.1, 1e-9)


@pytest.mark.parametrize("delta", [1e-5, 1e-9])
def test_pld_of_many_sampled_steps_is_not_below_the_exact_curve(delta):
    """With next to no amplification; below 1e-10 the accountant loses accuracy."""
    event = PoissonSampledDpEvent(1 - 1e-9, GaussianDpEvent(60.0))
    epsilon = pld_epsilon(SelfComposedDpEvent(event, 1000), delta)
    assert epsilon >= gaussian_epsilon(math.sqrt(1000) / 60.0, delta) * (1 - 1e-9)


def test_what_rounding_takes_from_a_small_delta_is_taken_off_first():
    # 300,000 steps at 1e-9: 41.823 without, and the exact curve of no sampling 41.833
    steps, mu = 300_000, 5.0
    almost_all = PoissonSampledDpEvent(1 - 1e-7, GaussianDpEvent(math.sqrt(steps) / mu))
    epsilon = pld_epsilon(SelfComposedDpEvent(almost_all, steps), 1e-9)
    assert gaussian_epsilon(mu, 1e-9) < epsilon < 1.005 * gaussian_epsilon(mu, 1e-9)


def test_steps_of_all_parts_count_towards_what_rounding_takes(plant):
    part = SelfComposedDpEvent(PoissonSampledDpEvent(0.5, GaussianDpEvent(1e3)), 100)
    both = SelfComposedDpEvent(ComposedDpEvent([part, part, GaussianDpEvent(1e3)]), 5)
    plant("mass that rounding takes", 1e-9 / 1005)
    assert pld_epsilon(both, 0.999e-9) == math.inf
    assert pld_epsilon(both, 1.1e-9) < math.inf


def test_sampled_plans_of_too_many_steps_are_refused_before_any_work():
    query = Query("gradient", 1.0, count=10**7, sampling_prob=0.01)
    with pytest.raises(UnsupportedEventError, match="larger for so many steps"):
        plan_releases([query], epsilon=1.0, delta=1e-9, accounting="pld")


def test_sampled_plans_refuse_a_delta_at_which_the_accountant_errs():
    query = Query("gradient", 1.0, count=1000, sampling_prob=0.5)
    with pytest.raises(ValueError, match="delta must be in"):
        plan_releases([query], noise_multiplier=60.0, delta=1e-10, accounting="pld")
