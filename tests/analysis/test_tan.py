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


@pytest.mark.slow
def test_loss_distributions_prove_less_than_renyi(golden_tan):
    for row in golden_tan["table_6"]:
        tan = settings_of(row)
        assert 0.9 < tan.epsilon(row["delta"]) / row["epsilon"] < 0.97


def test_half_the_data_costs_twice_the_epsilon(golden_tan):
    """Table 6, "doubling the data divides epsilon by 2"."""
    whole, half = map(settings_of, golden_tan["table_6"][:2])
    ratio = half.epsilon(1.6e-6, accountant="rdp") / whole.epsilon(
        8e-7, accountant="rdp"
    )
    assert ratio == pytest.approx(17.98 / 8.00, rel=0.01)


def test_closed_form_of_figure_2(golden_tan):
    for row in golden_tan["figure_2"]:
        epsilon = closed_form_epsilon(row["eta"], 1e-6)
        assert epsilon == pytest.approx(row["closed_form"], rel=row["tolerance"])


@pytest.mark.parametrize(("eta", "epsilon"), [(0.13, 1.0), (0.95, 8.0)])
def test_etas_of_figure_2_are_those_of_its_epsilons(eta, epsilon):
    """To the two digits that the caption prints."""
    assert round(eta_for(epsilon, 1e-6), 2) == eta


@pytest.mark.parametrize("eta", [0.13, 0.95])
def test_wall_of_figure_2(eta):
    """Below 0.5 epsilon surges; from 2 on it is nearly constant, for every S."""
    noises = [0.4, 1.0, 2.0, 4.0, 8.0]
    for n_iter in (1_000, 10_000, 100_000):
        curve = wall_curve(eta, n_iter, noises, 1e-6) / closed_form_epsilon(eta, 1e-6)
        assert np.all(np.diff(curve) < 0)
        assert curve[0] > 6
        assert 0.8 < curve[4] < curve[2] < 1.15


@pytest.mark.parametrize("eta", [0.13, 0.95])
def test_epsilon_of_figure_2_depends_on_eta_alone_in_front_of_the_wall(eta):
    """All numbers of steps agree within 5 % from 2 on; at 0.3 epsilon means nothing."""
    curves = np.array(
        [wall_curve(eta, n, [0.3, 0.5, 2.0, 4.0], 1e-6) for n in (1_000, 100_000)]
    ) / closed_form_epsilon(eta, 1e-6)
    assert np.all(curves[:, 0] > 100)
    assert np.all(curves[:, 1] > 4)
    assert np.all(np.abs(curves[1, 2:] / curves[0, 2:] - 1) < 0.05)
    assert np.all(np.abs(curves[:, 2:] - 1) < 0.15)


def test_half_the_noise_and_batch_costs_little_in_front_of_the_wall_alone():
    """Section 3.4: beyond a noise of 4 almost nothing, below 2 a great deal."""

    def cost(noise):
        q = 0.0128 * noise / 2.5
        full, half = TAN(q, noise, 72_000), TAN(q / 2, noise / 2, 72_000)
        epsilons = [tan.epsilon(8e-7, accountant="rdp") for tan in (full, half)]
        return epsilons[1] / epsilons[0]

    assert cost(8.0) < 1.03
    assert cost(2.0) > 1.25
    assert cost(1.0) > 3


def test_twice_the_batch_for_a_quarter_of_the_steps_keeps_epsilon():
    """Section 3.2."""
    one, two = TAN(0.0128, 2.5, 72_000), TAN(0.0256, 2.5, 18_000)
    assert two.eta == pytest.approx(one.eta)
    epsilons = [tan.epsilon(8e-7, accountant="rdp") for tan in (one, two)]
    assert epsilons[1] == pytest.approx(epsilons[0], rel=0.01)


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


def test_eta_step_of_figure_3_is_that_of_imagenet(golden_tan):
    """1.2M records as the paper rounds them: 3.9e-3 to the digits of the caption."""
    eta_step = TAN(16384 / 1.2e6, 2.5, 72_000).eta_step
    assert round(eta_step, 4) == golden_tan["figure_3"]["eta_step"]


@pytest.mark.parametrize("noise", [0.5, 1.0, 2.0, 2.5, 4.0])
def test_ratio_of_figure_3_has_a_closed_form_at_order_2(golden_tan, noise):
    """Section 3.3: q^2 (exp(1 / sigma^2) - 1) is mu^2 of a step."""
    tan = TAN(golden_tan["figure_3"]["eta_step"] * math.sqrt(2) * noise, noise, 1)
    q = tan.sampling_prob
    expected = math.log1p(q**2 * math.expm1(1 / noise**2)) * noise**2 / q**2
    assert rdp_ratio(tan, [2])[0] == pytest.approx(expected, rel=1e-6)


def test_transition_of_figure_3_is_where_section_3_2_says(golden_tan):
    """The ratio explodes soon after ``q alpha exp(alpha / (2 sigma^2))`` exceeds 1."""
    for noise in (1.0, 1.5, 2.0, 2.5):
        q = golden_tan["figure_3"]["eta_step"] * math.sqrt(2) * noise
        orders = np.arange(2, 100)
        excess = q * orders * np.exp(orders / (2 * noise**2))
        ratios = rdp_ratio(TAN(q, noise, 1), orders.tolist())
        assert np.all(ratios[excess < 1] < 2)
        assert np.all(
            ratios[(excess > 100) & (orders > 2 * math.log(1 / q) * noise**2)] > 3
        )


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
