import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st

from privfeat.analysis.tan import (
    TAN,
    closed_form_epsilon,
    eta_for,
    rdp_ratio,
    simulate,
    wall_curve,
)


def settings_of(row):
    q = row["batch_size"] / row["n_samples"]
    return TAN(q, row["noise_multiplier"], row["n_iter"])


def test_epsilons_of_the_paper(golden_tan):
    for row in golden_tan["table_6"]:
        tan = settings_of(row)
        near = pytest.approx(row["epsilon"], rel=row["tolerance"])
        assert tan.epsilon(row["delta"], accountant="rdp") == near
        assert tan.closed_form_epsilon(row["delta"]) == pytest.approx(
            row["closed_form"], rel=row["tolerance"]
        )


def test_loss_distributions_prove_less_than_renyi(golden_tan):
    for row in golden_tan["table_6"]:
        tan = settings_of(row)
        assert 0.9 < tan.epsilon(row["delta"]) / row["epsilon"] < 0.97


def test_closed_form_of_figure_2(golden_tan):
    for row in golden_tan["figure_2"]:
        epsilon = closed_form_epsilon(row["eta"], 1e-6)
        assert epsilon == pytest.approx(row["closed_form"], rel=row["tolerance"])


@pytest.mark.parametrize("eta", [0.13, 0.95])
def test_wall_of_figure_2(eta):
    """Below 0.5 epsilon surges; from 2 on it is nearly constant, for every S."""
    noises = [0.4, 1.0, 2.0, 4.0, 8.0]
    for n_iter in (1_000, 10_000, 100_000):
        curve = wall_curve(eta, n_iter, noises, 1e-6) / closed_form_epsilon(eta, 1e-6)
        assert np.all(np.diff(curve) < 0)
        assert curve[0] > 6
        assert 0.8 < curve[4] < curve[2] < 1.15


def test_wall_has_no_value_where_no_batch_is_large_enough():
    curve = wall_curve(0.95, 4, [0.5, 2.0], 1e-6)
    assert np.isfinite(curve[0])
    assert np.isnan(curve[1])


def test_ratio_of_figure_3(golden_tan):
    eta_step = golden_tan["figure_3"]["eta_step"]
    orders = [2, 4, 8]

    def ratio(noise):
        return rdp_ratio(TAN(eta_step * math.sqrt(2) * noise, noise, 1), orders)

    assert np.all(np.abs(ratio(4.0) - 1) < 0.05)
    assert np.all(np.abs(ratio(2.0) - 1) < 0.17)
    assert np.all(ratio(0.5) > 10)


@pytest.mark.parametrize(("q", "noise"), [(0.01, 2.0), (0.3, 0.7), (1.0, 3.0)])
def test_ratio_is_that_of_dp_accounting(q, noise):
    """With one order, epsilon is that order's bound: two independent formulas."""
    tan, delta = TAN(q, noise, 7), 1e-6
    event = GaussianDpEvent(noise)
    event = PoissonSampledDpEvent(q, event) if q < 1 else event
    for order in (2, 5, 16):
        divergence = rdp_ratio(tan, [order])[0] * order * tan.eta_step**2
        accountant = RdpAccountant([order]).compose(event, 7)
        expected = accountant.get_epsilon(delta)
        bound = 7 * divergence + math.log1p(-1 / order)
        bound -= math.log(delta * order) / (order - 1)
        assert max(bound, 0) == pytest.approx(expected, rel=1e-9)


@given(st.floats(1e-3, 50), st.floats(1e-12, 0.5))
def test_eta_for_inverts_the_closed_form(epsilon, delta):
    assert closed_form_epsilon(eta_for(epsilon, delta), delta) == pytest.approx(epsilon)


@given(st.floats(1e-4, 1), st.floats(0.5, 20), st.integers(1, 10**6), st.floats(1, 1e3))
def test_simulation_keeps_the_noise_of_a_step(q, noise, n_iter, factor):
    reference = TAN(q, noise, n_iter)
    small = simulate(q, noise, n_iter, factor)
    assert small.settings.eta == pytest.approx(reference.eta)
    assert small.settings.n_iter == n_iter
    assert small.compute_saved == pytest.approx(1 - 1 / factor)


def test_eta_adds_up_over_steps():
    tan = TAN(0.01, 2.0, 900)
    assert tan.eta == pytest.approx(30 * tan.eta_step)
    assert tan.eta**2 == pytest.approx(0.01**2 * 900 / (2 * 2.0**2))
    assert tan.total_noise * tan.eta == pytest.approx(1)


def test_twice_the_data_halves_eta_and_more_than_halves_epsilon():
    tan = TAN(0.01, 3.0, 10_000)
    doubled = tan.with_more_data(2)
    assert doubled.eta == pytest.approx(tan.eta / 2)
    assert doubled.epsilon(1e-6) < 0.55 * tan.epsilon(1e-6)


def test_warnings_name_both_sides_of_the_sweet_spot():
    assert "privacy wall" in TAN(0.01, 1.9, 10).warnings()[0]
    assert TAN(0.01, 3.0, 10).warnings() == ()
    assert "half the compute" in TAN(0.01, 5.0, 10).warnings()[0]
    assert TAN(0.01, 0.5, 5000).overcharge(1e-6) > 3
    assert TAN(0.01, 3.0, 5000).overcharge(1e-6) < 1.1


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, True, "1"])
def test_settings_refuse_what_is_out_of_range(bad):
    good = {"sampling_prob": 0.01, "noise_multiplier": 2.0, "n_iter": 10}
    for name in good:
        with pytest.raises((TypeError, ValueError), match=name):
            TAN(**good | {name: bad})
    with pytest.raises((TypeError, ValueError), match="factor"):
        simulate(0.01, 2.0, 10, bad)
    with pytest.raises((TypeError, ValueError), match="factor"):
        TAN(**good).with_more_data(bad)


def test_accountant_is_one_of_two():
    with pytest.raises(ValueError, match="accountant must be one of"):
        TAN(0.01, 2.0, 10).epsilon(1e-5, accountant="clt")
