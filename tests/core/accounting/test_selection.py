"""The cost of a selection: brute force, the paper's theorem, and dp-accounting."""

import math

import numpy as np
import pytest
from dp_accounting.dp_event import GaussianDpEvent, RepeatAndSelectDpEvent
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privfeat.core.accounting.conversions import gaussian_epsilon, gaussian_mu
from privfeat.core.accounting.run_count import RunCount
from privfeat.core.accounting.selection import (
    or_infinite,
    score_sensitivity,
    selection_epsilon,
    selection_mu,
    selection_rdp,
)

COUNTS = [(eta, mean) for eta in (-0.5, 0.0, 1.0, 3.0) for mean in (1.5, 10.0, 100.0)]
ORDERS = np.array([1.5, 2.0, 4.0, 16.0, 64.0])


def density_of_the_best(y, centre, runs):
    """Of the largest of K draws from N(centre, 1): the sum over K, by hand."""
    log_below = stats.norm.logcdf(y - centre)
    k = np.arange(1, 4000)[:, None]
    if runs.eta == 0.0:
        p = (1 - runs.gamma) ** k / (k * math.log(1 / runs.gamma))
    else:
        factors = np.cumprod([(i + runs.eta) / (i + 1) for i in range(3999)])
        p = (1 - runs.gamma) ** k / (runs.gamma**-runs.eta - 1) * factors[:, None]
    return stats.norm.pdf(y - centre) * np.sum(
        p * k * np.exp((k - 1) * log_below), axis=0
    )


@pytest.mark.parametrize("eta", [-0.5, 0.0, 1.0])
@pytest.mark.parametrize(("mu", "delta"), [(0.3, 1e-2), (0.3, 1e-5), (2.0, 1e-3)])
def test_selection_epsilon_bounds_a_search_whose_score_is_the_output(eta, mu, delta):
    """The true delta of both directions by integration: no larger, and not far."""
    runs = RunCount.from_mean(5.0, eta)
    epsilon = selection_epsilon(mu, delta, runs)
    y = np.linspace(-9.0, 11.0, 2001)
    one, two = (density_of_the_best(y, centre, runs) for centre in (0.0, mu))
    assert np.trapezoid(one, y) == pytest.approx(1.0, abs=1e-6)
    truth = max(
        np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0.0), y)
        for p, q in [(one, two), (two, one)]
    )
    assert truth <= delta
    less = 0.5 * epsilon
    assert np.trapezoid(np.maximum(two - math.exp(less) * one, 0.0), y) > delta / 10


@pytest.mark.parametrize(("eta", "mean"), COUNTS)
@pytest.mark.parametrize("mu", [0.01, 0.2, 1.0])
def test_selection_rdp_is_theorem_2_at_its_best_order(eta, mean, mu):
    runs, rho = RunCount.from_mean(mean, eta), mu**2 / 2
    b = np.geomspace(1.0, 1e5, 200_001)
    extra = np.min((1 - 1 / b) * rho * b + math.log(1 / runs.gamma) / b)
    expected = rho * ORDERS + (1 + eta) * extra + np.log(runs.mean) / (ORDERS - 1)
    np.testing.assert_allclose(selection_rdp(ORDERS, mu, runs), expected, rtol=1e-7)


@pytest.mark.parametrize(("eta", "mean"), [pair for pair in COUNTS if pair[0] >= 0])
@pytest.mark.parametrize("mu", [0.05, 0.2, 1.0])
def test_selection_agrees_with_dp_accounting(eta, mean, mu):
    """Its divergences are ours, made monotone; our epsilon is lower, by the profile."""
    runs = RunCount.from_mean(mean, eta)
    orders = 1.0 + np.geomspace(1e-4, 500.0, 400)
    event = RepeatAndSelectDpEvent(GaussianDpEvent(1 / mu), mean, eta)
    accountant = RdpAccountant(orders).compose(event)
    ours = np.minimum.accumulate(selection_rdp(orders, mu, runs)[::-1])[::-1]
    np.testing.assert_allclose(accountant.rdp, ours, rtol=2e-3)
    epsilon = selection_epsilon(mu, 1e-5, runs)
    assert 0.5 * accountant.get_epsilon(1e-5) < epsilon
    assert epsilon <= accountant.get_epsilon(1e-5)


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_selection_epsilon_of_pure_privacy_is_at_most_that_of_the_paper(eta):
    """For a tiny delta h is at most the run's epsilon: (2 + eta) epsilon in all."""
    runs, mu, delta = RunCount.from_mean(10.0, eta), 0.2, 1e-7
    run_epsilon = gaussian_epsilon(mu, delta / runs.mean)
    assert run_epsilon < selection_epsilon(mu, delta, runs) < (2 + eta) * run_epsilon


@given(
    mu=st.floats(1e-3, 5.0),
    more=st.floats(1.0, 2.0),
    eta=st.floats(-0.5, 10.0),
    mean=st.floats(1.01, 900.0),
    delta=st.sampled_from([1e-7, 1e-5, 1e-2, 0.5]),
)
def test_selection_costs_more_than_a_run_and_grows_with_mu(mu, more, eta, mean, delta):
    runs = RunCount.from_mean(mean, eta)
    epsilon = selection_epsilon(mu, delta, runs)
    assert epsilon >= gaussian_epsilon(mu, delta)
    assert selection_epsilon(mu * more, delta, runs) >= epsilon


@pytest.mark.parametrize("mu", [0.1, 2.0])
def test_selection_grows_with_the_mean_and_with_eta(mu):
    by_mean = [
        selection_epsilon(mu, 1e-5, RunCount.from_mean(mean, 0.0))
        for mean in (1.01, 2, 5, 30, 1000)
    ]
    by_eta = [
        selection_epsilon(mu, 1e-5, RunCount.from_mean(10.0, eta))
        for eta in (-0.5, 0, 0.5, 1, 5)
    ]
    assert by_mean == sorted(by_mean)
    assert by_eta == sorted(by_eta)


@pytest.mark.parametrize(("eta", "mean"), COUNTS)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0, 50.0])
def test_selection_mu_spends_the_budget_and_not_more(eta, mean, epsilon):
    runs = RunCount.from_mean(mean, eta)
    mu = selection_mu(epsilon, 1e-5, runs)
    spent = selection_epsilon(mu, 1e-5, runs)
    assert spent <= epsilon
    assert spent == pytest.approx(epsilon, rel=1e-6)
    assert mu < gaussian_mu(epsilon, 1e-5)


@pytest.mark.parametrize(("delta", "most"), [(1e-5, 55.26), (1e-7, 50.66)])
def test_a_selection_has_no_epsilon_where_its_runs_are_drawn_too_coarsely(delta, most):
    """A distance of 1e-38 in their number adds exp(epsilon) as much to delta."""
    runs = RunCount.from_mean(10.0, 0.0)
    largest = selection_epsilon(selection_mu(1e3, delta, runs), delta, runs)
    assert most - 0.01 < largest < most + 0.01
    assert math.exp(largest) * 1e-38 < 1e-9 * delta
    assert selection_epsilon(20.0, delta, runs) == math.inf
    assert or_infinite(largest, delta, 2) == math.inf
    assert or_infinite(math.log(1e29 * delta), delta) == math.inf  # rounds against us


def test_score_sensitivity_is_what_one_record_changes():
    assert score_sensitivity("add_remove") == 1.0
    assert score_sensitivity("replace_one") == 2.0


@pytest.mark.validation
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, True, "1", None])
def test_selection_mu_refuses_a_wrong_epsilon(value):
    with pytest.raises((TypeError, ValueError), match="epsilon"):
        selection_mu(value, 1e-5, RunCount(0.0, 0.1))


@pytest.mark.validation
@pytest.mark.parametrize("value", [0, 1.0, 2e-10, math.nan, math.inf, True, "1", None])
def test_selection_refuses_a_wrong_delta(value):
    with pytest.raises((TypeError, ValueError), match="delta"):
        selection_epsilon(0.1, value, RunCount.from_mean(10.0, 0.0))


@pytest.mark.validation
def test_selection_mu_refuses_a_budget_that_no_noise_meets():
    with pytest.raises(ValueError, match="noise multiplier"):
        selection_mu(1e-7, 1e-8, RunCount.from_mean(3.0, 0.0))


@pytest.mark.validation
def test_selection_mu_refuses_a_budget_that_one_run_would_meet():
    with pytest.raises(ValueError, match="fewer runs"):
        selection_mu(1e-5, 0.5, RunCount.from_mean(1000.0, 10.0))


def test_bounds_are_rounded_up():
    """By more than the rounding of their terms, computed here in the same way."""
    runs, mu = RunCount.from_mean(10.0, 0.0), 0.2
    log = -math.log(runs.gamma)
    b = max(1.0, math.sqrt(2.0 * log / mu**2))
    extra = (b - 1.0) * mu**2 / 2.0 + log / b
    plain = mu**2 / 2.0 * ORDERS + extra + math.log(runs.mean) / (ORDERS - 1.0)
    assert np.all(selection_rdp(ORDERS, mu, runs) > plain)


def test_epsilon_is_rounded_up(plant):
    plant("search for the epsilon of a selection", lambda *_, **__: 0.25)
    plant("epsilon of one run", lambda *_: 1.0)
    assert selection_epsilon(0.2, 1e-5, RunCount.from_mean(10.0, 1.0)) > 1.5
