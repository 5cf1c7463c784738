"""Rényi divergences against closed forms, 40 digits, and the other accountings."""

import math
from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    UnsupportedDpEvent,
    rdp,
)
from hypothesis import given
from hypothesis import strategies as st

from privfeat import PrivacyStatement
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.conversions import (
    gaussian_epsilon,
    gaussian_mu,
    mu_from_rho,
    zcdp_epsilon,
    zcdp_rho,
)
from privfeat.core.accounting.plan import Query
from privfeat.core.accounting.pld import pld_epsilon
from privfeat.core.accounting.rdp import (
    divergences_of,
    epsilon_of_divergences,
    rdp_epsilon,
    rdp_mu,
)
from privfeat.core.statement.composition import compose
from privfeat.exceptions import UnsupportedEventError
from tests.core.plans import SAMPLED, composed_mu


def sampled(probability, noise, count=1):
    event = PoissonSampledDpEvent(probability, GaussianDpEvent(noise))
    return SelfComposedDpEvent(event, count)


@pytest.mark.parametrize("noise", [0.02, 1.0, 300.0])
@pytest.mark.parametrize("orders", [[1.02, 1.5, 2, 7.3, 1e5], [1.5, 2.5], [2, 7.3]])
def test_divergences_of_gaussians_are_those_of_mironov(orders, noise):
    """Proposition 7: ``order / (2 noise**2)`` a step, at any order."""
    orders = np.array(orders, float)
    found = divergences_of(SelfComposedDpEvent(GaussianDpEvent(noise), 5), orders)
    exact = 5 * orders / (2 * noise**2)
    assert np.all(found >= exact)
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("mu", [0.003, 0.3, 3.0, 100.0])
def test_epsilon_is_the_least_of_the_conversion_of_canonne_et_al(mu, delta):
    """Proposition 12 at a million orders; those that are tried lose 2e-4 at most."""
    order = 1.0 + np.geomspace(0.0101, 1e6, 10**6)
    curve = order * mu**2 / 2 + np.log1p(-1 / order)
    least = max(0.0, np.min(curve - np.log(delta * order) / (order - 1)))
    found = rdp_epsilon(GaussianDpEvent(1 / mu), delta)
    assert least <= found * (1 + 1e-9)
    assert found <= least * (1 + 2e-4)


@given(mu=st.floats(-3, 2).map(lambda x: 10**x), delta=st.floats(-10, -0.01))
def test_epsilon_is_never_below_the_exact_curve_nor_above_zcdp(mu, delta):
    delta = 10**delta
    found = rdp_epsilon(GaussianDpEvent(1 / mu), delta)
    assert found >= gaussian_epsilon(mu, delta)
    if delta <= 0.1:  # for larger ones the best order is below 1.01
        assert found <= zcdp_epsilon(mu**2 / 2, delta)


def log_moment(q, noise, order):
    """Return ``log E[((1 - q) + q exp((2 x - 1) / (2 noise**2)))**order]``."""
    q, noise, order = map(mp.mpf, (q, noise, order))

    def density(x):
        ratio = mp.exp((2 * x * noise - 1) / (2 * noise**2))
        return mp.npdf(x) * ((1 - q) + q * ratio) ** order

    last = order / noise
    ends = {mp.mpf(-40), mp.mpf(0), last - 5, last, last + 5, last + 45}
    return mp.log(mp.quad(density, sorted(ends), maxdegree=9))


def check_divergences(q, noise, orders):
    with mp.workdps(40):
        exact = [log_moment(q, noise, a) / (mp.mpf(a) - 1) for a in orders]
    found = divergences_of(sampled(q, noise), np.array(orders))
    assert np.all(np.isfinite(found))
    assert all(a >= b for a, b in zip(found, exact, strict=True))
    # the terms that change sign are taken for positive: least so at small samples
    close = [a <= 1.01 * float(b) + 1e-9 for a, b in zip(found, exact, strict=True)]
    assert all(close[i] for i, order in enumerate(orders) if order % 1 == 0)


def test_divergences_of_samples_are_not_below_the_integral():
    check_divergences(0.01, 1.1, [1.3, 2.0, 2.5, 3.0])


@pytest.mark.slow
@pytest.mark.parametrize("q", [1e-6, 1e-3, 0.2, 0.9])
@pytest.mark.parametrize("noise", [0.3, 1.0, 5.0, 60.0])
def test_divergences_of_samples_are_not_below_the_integral_anywhere(q, noise):
    check_divergences(q, noise, [1.02, 1.1, 1.7, 2.0, 3.3, 4.0, 9.9, 10.0, 64.0])


@pytest.mark.slow
@pytest.mark.parametrize("q", [1e-9, 1e-5, 0.05, 0.7])
@pytest.mark.parametrize("noise", [0.4, 2.0, 100.0])
def test_divergences_at_whole_orders_are_not_below_their_sums(q, noise):
    orders = [2, 5, 32, 128, 512, 1024]
    with mp.workdps(50):
        r, s = mp.mpf(q), mp.mpf(noise)
        for order in orders:
            terms = (
                mp.binomial(order, i)
                * r**i
                * (1 - r) ** (order - i)
                * mp.exp((i * i - i) / (2 * s * s))
                for i in range(order + 1)
            )
            exact = mp.log(mp.fsum(terms)) / (order - 1)
            (found,) = divergences_of(sampled(q, noise), np.array([float(order)]))
            assert exact <= found <= exact * (1 + 1e-9) + 1e-9


def test_a_series_that_does_not_converge_leaves_the_chord():
    """Of (a - 1) D_a between whole orders; dp-accounting gives infinity."""
    orders = np.array([1.0282398101736032, 2.0])
    found = divergences_of(sampled(0.05888197642133185, 0.8370163940244094), orders)
    assert found[0] == pytest.approx(found[1], rel=1e-6)


@pytest.mark.parametrize(("q", "noise", "count"), [(0.01, 2.0, 900), (0.3, 4.0, 20)])
def test_epsilon_of_samples_is_little_above_that_of_loss_distributions(q, noise, count):
    event = sampled(q, noise, count)
    exact = pld_epsilon(event, 1e-5)
    assert exact <= rdp_epsilon(event, 1e-5) <= 1.3 * exact


def test_epsilon_of_samples_of_all_is_not_below_the_exact_curve():
    for noise in (0.05, 1.0, 30.0):
        exact = gaussian_epsilon(math.sqrt(10) / noise, 1e-5)
        assert exact <= rdp_epsilon(sampled(1 - 1e-9, noise, 10), 1e-5)


def test_epsilon_refuses_an_unknown_event():
    with pytest.raises(UnsupportedEventError, match="supported by RDP"):
        rdp_epsilon(UnsupportedDpEvent(), 1e-5)


@pytest.mark.parametrize("order", [1.3, 2.0, 77.0])
def test_the_conversion_rounds_up(order):
    found = epsilon_of_divergences(np.array([order]), np.array([0.7]), 1e-5)
    a, delta = mp.mpf(order), mp.mpf(1e-5)
    exact = mp.mpf(0.7) + mp.log(1 - 1 / a) - mp.log(delta * a) / (a - 1)
    assert exact <= found <= exact * (1 + 2e-12)


@pytest.mark.parametrize("epsilon", [math.nan, -0.5, -1.0])
def test_epsilon_fails_closed(monkeypatch, epsilon):
    monkeypatch.setattr(rdp, "compute_epsilon", lambda *_: (epsilon, 2.0))
    assert rdp_epsilon(GaussianDpEvent(1.0), 1e-5) == math.inf


@pytest.mark.parametrize("divergence", [0.0, -0.5, -1.0, math.nan])
def test_epsilon_takes_no_divergence_of_zero(monkeypatch, divergence):
    """dp-accounting makes an epsilon of 0 of them."""

    class Accountant:
        supports = staticmethod(lambda event: True)

        def __init__(self, orders):
            self.orders = orders

        def compose(self, event):
            return SimpleNamespace(rdp=np.full(len(self.orders), divergence))

    monkeypatch.setattr(rdp, "RdpAccountant", Accountant)
    assert rdp_epsilon(GaussianDpEvent(1.0), 1e-5) == math.inf


def test_divergences_that_are_rounded_away_cost_what_rounding_may_take():
    """A moment has lost up to 2**-50 for each unit of the order, in each step."""
    n_steps, orders = 2**31 - 1, np.array([2.0, 8.0])
    run = sampled(5e-4, 1e6, n_steps)
    found = divergences_of(run, orders)
    assert np.all(found > n_steps * orders * (5e-4 / 1e6) ** 2 / 2)
    assert np.all(found > n_steps * 2.0**-50 * orders / (orders - 1))
    assert rdp_epsilon(run, 1e-10) > 0


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 8.0, 1e3])
def test_mu_is_affordable_and_a_little_more_is_not(epsilon):
    mu = rdp_mu(epsilon, 1e-5)
    assert rdp_epsilon(GaussianDpEvent(1 / mu), 1e-5) <= epsilon
    assert rdp_epsilon(GaussianDpEvent(1 / mu / (1 + 1e-8)), 1e-5) > epsilon
    exact, zcdp = gaussian_mu(epsilon, 1e-5), mu_from_rho(zcdp_rho(epsilon, 1e-5))
    assert zcdp < mu < exact


def test_mu_that_no_order_proves_is_refused(monkeypatch):
    monkeypatch.setattr(rdp, "compute_epsilon", lambda *_: (math.inf, 2.0))
    with pytest.raises(ValueError, match="in reach of Rényi divergences"):
        rdp_mu(1.0, 1e-5)


@pytest.mark.parametrize("budget", [{"epsilon": 2.0}, {"rho": 0.1}])
def test_plan_costs_its_epsilon_and_no_more(queries, budget):
    plan = plan_releases(queries, **budget, accounting="rdp", adjacency="replace_one")
    found = rdp_epsilon(plan.event(), 1e-5)
    assert found == pytest.approx(plan.epsilon, rel=1e-6)
    assert found <= plan.epsilon * (1 + 1e-12)
    assert plan.mu == pytest.approx(composed_mu(plan), rel=1e-9)
    statement = PrivacyStatement.from_plan(plan, public=(), seeded=False)
    assert "Rényi divergences" in str(statement)
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    # Gaussian fits compose without loss, however each was accounted
    assert compose([statement]).epsilon < plan.epsilon


def test_sampled_plan_costs_its_epsilon_and_no_more():
    plan = plan_releases(SAMPLED, epsilon=2.0, accounting="rdp")
    found = rdp_epsilon(plan.event(), 1e-5)
    assert found == plan.epsilon <= 2.0
    assert found > 1.99
    assert (plan.mu, plan.rho, plan.accounting) == (None, None, "rdp")


def test_sampled_plan_with_next_to_no_noise_is_answered_at_once():
    """A loss distribution of it would fill the memory."""
    query = Query("gradient", 1.0, count=2000, sampling_prob=0.01)
    plan = plan_releases([query], noise_multiplier=0.02, accounting="rdp")
    assert 1e5 < plan.epsilon < 1e9


def test_sampled_plan_that_nothing_bounds_is_refused(monkeypatch):
    monkeypatch.setattr(rdp, "compute_epsilon", lambda *_: (math.inf, 2.0))
    with pytest.raises(UnsupportedEventError, match="accounting='rdp' must find"):
        plan_releases(SAMPLED, noise_multiplier=1.0, accounting="rdp")


def test_sampled_fits_by_renyi_divergences_compose_so():
    def fit(accounting):
        query = Query("gradient", 1.0, count=100, sampling_prob=0.01)
        plan = plan_releases([query], noise_multiplier=2.0, accounting=accounting)
        return PrivacyStatement.from_plan(plan, public=(), seeded=False)

    one, other = fit("rdp"), fit("pld")
    assert compose([one]).epsilon == one.epsilon
    gaussian = PrivacyStatement.from_plan(
        plan_releases([Query("gram", 1.0)], rho=1e-4), public=(), seeded=False
    )
    total = compose([one, one, gaussian])
    assert total.method == "Rényi divergences"
    event = ComposedDpEvent([one.event(), one.event(), gaussian.event()])
    assert total.epsilon == rdp_epsilon(event, 1e-5) < 2 * one.epsilon
    mixed = compose([one, other])
    assert mixed.method == "privacy loss distributions"
    assert mixed.epsilon < compose([one, one]).epsilon
