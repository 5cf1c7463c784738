"""The cost of several fits, against the definitions and dp-accounting."""

import dataclasses
import math

import numpy as np
import pytest
from dp_accounting import ComposedDpEvent, rdp
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from privfeat import PrivacyStatement
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.conversions import gaussian_epsilon
from privfeat.core.accounting.plan import Query
from privfeat.core.accounting.run_count import RunCount
from privfeat.core.accounting.selection import selection_epsilon
from privfeat.core.statement.composition import compose
from privfeat.core.statement.selection import Selection
from privfeat.exceptions import UnsupportedEventError


def fit(seeded=False, sampling_prob=1.0, **budget):
    query = Query("gradient", 1.0, count=3, sampling_prob=sampling_prob)
    plan = plan_releases([query], **budget)
    return PrivacyStatement.from_plan(plan, public=(), seeded=seeded)


@pytest.fixture
def sampled():
    return fit(sampling_prob=0.1, noise_multiplier=2.0, accounting="pld")


@pytest.fixture
def selected():
    runs = RunCount.from_mean(10.0, 0.0)
    return PrivacyStatement(
        epsilon=selection_epsilon(0.2, 1e-5, runs),
        delta=1e-5,
        rho=None,
        mu=None,
        adjacency="add_remove",
        accounting="selection",
        releases=(),
        public=(),
        seeded=False,
        selection=Selection(0.2, runs.eta, runs.gamma, "public"),
    )


def test_compose_of_gaussian_fits_adds_the_squares_of_mu():
    fits = [fit(rho=0.02), fit(rho=0.03, accounting="zcdp"), fit(epsilon=1.0)]
    total = compose(fits, delta=1e-6)
    mu = math.sqrt(sum(statement.mu**2 for statement in fits))
    assert mu * (1 + 1e-13) < total.mu == pytest.approx(mu)  # rounded up
    assert total.epsilon == pytest.approx(gaussian_epsilon(mu, 1e-6))
    assert total.n_fits == 3
    assert total.private


def test_compose_of_a_statement_that_is_in_no_list_says_so(sampled):
    with pytest.raises(TypeError, match="Pass a list"):
        compose(sampled)


def test_compose_of_one_fit_is_that_fit(sampled, selected):
    for statement in (fit(epsilon=1.0), sampled, selected):
        total = compose([statement])
        assert total.epsilon == pytest.approx(statement.epsilon, rel=1e-9)
        assert total.delta == statement.delta


def test_compose_takes_smaller_deltas_where_nothing_is_sampled(sampled):
    """The loss distributions of sampled fits lose accuracy there."""
    alone = compose([fit(epsilon=1.0)], delta=2e-10)
    assert alone.epsilon > compose([fit(epsilon=1.0)], delta=1e-9).epsilon
    for fits in ([sampled], [fit(epsilon=1.0), sampled]):
        with pytest.raises(ValueError, match="delta must be"):
            compose(fits, delta=2e-10)
    for fits in ([fit(epsilon=1.0)], [sampled]):
        with pytest.raises(ValueError, match="delta must be"):
            compose(fits, delta=1.0)


@pytest.mark.parametrize("divergence", [math.nan, -0.5])
def test_compose_of_selections_fails_closed(monkeypatch, selected, divergence):
    monkeypatch.setattr(rdp, "compute_epsilon", lambda *_: (divergence, 2.0))
    assert compose([selected]).epsilon in (math.inf, selected.epsilon)
    assert compose([selected], delta=1e-6).epsilon == math.inf


@pytest.mark.parametrize("divergence", [-0.01, math.nan])
def test_compose_takes_no_negative_divergence_for_zero(plant, selected, divergence):
    """dp-accounting makes an epsilon of 0 of them."""
    plant(
        "divergence of a selection", lambda orders, *_: np.full(len(orders), divergence)
    )
    assert compose([selected], delta=1e-6).epsilon == math.inf


def test_what_costs_nothing_costs_nothing(monkeypatch, selected):
    monkeypatch.setattr(rdp, "compute_epsilon", lambda *_: (0.0, 2.0))
    assert compose([selected]).epsilon == 0.0


def test_total_cost_is_for_keeps():
    total = compose([fit()])
    assert not total.seeded
    with pytest.raises(dataclasses.FrozenInstanceError):
        total.epsilon = 0.0


def test_compose_of_sampled_fits_is_that_of_dp_accounting(sampled):
    total = compose([sampled, fit(rho=0.01), sampled])
    events = [sampled.event(), fit(rho=0.01).event(), sampled.event()]
    expected = PLDAccountant().compose(ComposedDpEvent(events)).get_epsilon(1e-5)
    assert total.epsilon == pytest.approx(expected, rel=1e-3)
    assert total.mu is None


def test_compose_of_rdp_fits_is_by_divergences_where_all_sampled_ones_are(sampled):
    of_rdp = fit(sampling_prob=0.1, noise_multiplier=2.0, accounting="rdp")
    gaussian = fit(rho=0.01)
    for fits, method in [
        ([of_rdp, gaussian, of_rdp], "Rényi divergences"),
        ([sampled, gaussian, of_rdp], "privacy loss distributions"),
        ([sampled, sampled], "privacy loss distributions"),
    ]:
        assert compose(fits).method == method


def test_compose_of_selections_leaves_room_for_the_draw_of_run_counts(
    monkeypatch, selected
):
    seen, genuine = [], rdp.compute_epsilon
    monkeypatch.setattr(
        rdp, "compute_epsilon", lambda *of: seen.append(of[-1]) or genuine(*of)
    )
    compose([selected, selected], delta=1e-6)
    assert all(delta <= 1e-6 * (1.0 - 1.9e-9) for delta in seen)
    assert seen


def test_compose_of_selections_is_that_of_dp_accounting(sampled, selected):
    fits = [selected, fit(rho=0.01), selected, sampled]
    total = compose(fits)
    accountant = RdpAccountant().compose(ComposedDpEvent([f.event() for f in fits]))
    assert total.epsilon == pytest.approx(accountant.get_epsilon(1e-5), rel=0.01)


def test_compose_adds_epsilons_where_that_is_less(selected):
    total = compose([selected, selected], delta=2e-5)
    assert total.epsilon == 2 * selected.epsilon
    assert "sum of the epsilons" in total.method


def test_compose_with_a_fit_without_privacy_is_infinite(selected):
    total = compose([selected, fit(epsilon=math.inf)])
    assert total.epsilon == math.inf
    assert not total.private


def test_compose_never_costs_less_than_a_part(sampled, selected):
    parts = [sampled, selected, fit(epsilon=1.0)]
    for i, one in enumerate(parts):
        for two in parts[i:]:
            assert compose([one, two]).epsilon >= max(one.epsilon, two.epsilon)


def test_compose_remembers_a_seed():
    total = compose([fit(seeded=True), fit()])
    assert total.seeded
    assert not total.private
    assert "SEEDED" in str(total)


def test_total_cost_shows_what_is_not_covered():
    total = compose([fit()] * 2)
    assert "NOT COVERED" not in str(total)
    total = dataclasses.replace(total, not_covered=("scores",))
    assert not total.private
    assert "NOT COVERED" in str(total)
    assert "- scores" in str(total)


@pytest.mark.validation
@pytest.mark.parametrize("statements", [[], [1.0], [None], "ab"])
def test_compose_refuses_what_is_no_statement(statements):
    with pytest.raises(TypeError, match="statements"):
        compose(statements)


@pytest.mark.validation
@pytest.mark.parametrize("delta", [0, 1.0, -1, math.nan, math.inf, True, "1", 1e-11])
def test_compose_refuses_a_wrong_delta(delta):
    with pytest.raises((TypeError, ValueError), match="delta"):
        compose([fit()], delta=delta)


@pytest.mark.validation
def test_compose_refuses_mixed_adjacencies_and_deltas():
    with pytest.raises(ValueError, match="adjacency"):
        compose([fit(), fit(adjacency="replace_one")])
    with pytest.raises(ValueError, match="delta must be given"):
        compose([fit(), fit(delta=1e-6)])


def test_compose_refuses_records_together_with_users():
    one = fit(epsilon=1.0)
    with pytest.raises(ValueError, match="share one unit"):
        compose([one, dataclasses.replace(one, unit="user")])


def test_total_cost_without_a_common_mu_does_not_show_one(sampled):
    assert "GDP" not in str(compose([sampled]))


def test_compose_refuses_what_the_accountant_cannot_bound(
    sampled, selected, monkeypatch
):
    monkeypatch.setattr(RdpAccountant, "supports", lambda self, event: False)
    with pytest.raises(UnsupportedEventError, match="supported by RDP"):
        compose([sampled, selected])


def test_selections_beside_sampled_fits_compose_at_whole_orders(
    monkeypatch, sampled, selected
):
    """At others dp-accounting breaks off a series of either sign."""
    seen, genuine = [], rdp.compute_epsilon

    def watch(orders, *rest):
        seen.append(np.asarray(orders))
        return genuine(orders, *rest)

    monkeypatch.setattr(rdp, "compute_epsilon", watch)
    compose([selected, sampled], delta=1e-6)
    compose([selected, fit(rho=0.01)], delta=1e-6)
    assert np.array_equal(seen[0], np.round(seen[0]))
    assert {2.0, 10.0, 256.0, 512.0} < {*seen[0]}
    assert 1.1 in seen[1]
