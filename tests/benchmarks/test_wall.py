"""Figures 2 and 3 of Sander et al. 2023, against the paper and dp-accounting."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.rdp import RdpAccountant
from figures.wall import draw_ratios, draw_wall, eta_for, rdp_ratio, wall_curve
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from privfeat.analysis.tan import TAN, closed_form_epsilon


@pytest.fixture(scope="module")
def eta_step():
    """Return the eta of a step of Figure 3."""
    golden = Path(__file__).parents[1] / "golden" / "tan.json"
    return json.loads(golden.read_text(encoding="utf-8"))["figure_3"]["eta_step"]


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


def test_wall_has_no_value_where_no_batch_is_large_enough():
    curve = wall_curve(0.95, 4, [0.5, 2.0], 1e-6)
    assert np.isfinite(curve[0])
    assert np.isnan(curve[1])


def test_ratio_of_figure_3(eta_step):
    orders = [2, 4, 8]

    def ratio(noise):
        return rdp_ratio(TAN(eta_step * math.sqrt(2) * noise, noise, 1), orders)

    assert np.all(np.abs(ratio(4.0) - 1) < 0.05)
    assert np.all(np.abs(ratio(2.0) - 1) < 0.17)
    assert np.all(ratio(0.5) > 10)


@pytest.mark.parametrize("noise", [0.5, 1.0, 2.0, 2.5, 4.0])
def test_ratio_of_figure_3_has_a_closed_form_at_order_2(eta_step, noise):
    """Section 3.3: q^2 (exp(1 / sigma^2) - 1) is mu^2 of a step."""
    tan = TAN(eta_step * math.sqrt(2) * noise, noise, 1)
    q = tan.sampling_prob
    expected = math.log1p(q**2 * math.expm1(1 / noise**2)) * noise**2 / q**2
    assert rdp_ratio(tan, [2])[0] == pytest.approx(expected, rel=1e-6)


def test_transition_of_figure_3_is_where_section_3_2_says(eta_step):
    """The ratio explodes soon after ``q alpha exp(alpha / (2 sigma^2))`` exceeds 1."""
    for noise in (1.0, 1.5, 2.0, 2.5):
        q = eta_step * math.sqrt(2) * noise
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


def test_wall_has_a_line_for_each_number_of_steps():
    ax = Figure().subplots()
    noises = [0.5, 2.0, 4.0]
    draw_wall(0.13, [1000, 10_000], noises, 1e-6, ax)
    lines = ax.get_lines()
    expected = wall_curve(0.13, 1000, noises, 1e-6)
    assert np.array_equal(lines[0].get_ydata(), expected)
    assert len(lines) == 2 + 2  # and the closed form and the wall


def test_ratios_have_a_line_for_each_noise():
    ax = Figure().subplots()
    draw_ratios(3.9e-3, (0.5, 1.0, 2.0, 4.0), (2, 4), ax)
    named = [line.get_label() for line in ax.get_lines()][:4]
    assert named == [f"noise multiplier {noise}" for noise in ("0.5", "1", "2", "4")]


@pytest.mark.parametrize(("eta", "epsilon"), [(0.13, 1.0), (0.95, 8.0)])
def test_etas_of_figure_2_are_those_of_its_epsilons(eta, epsilon):
    """To the two digits that the caption prints."""
    assert round(eta_for(epsilon, 1e-6), 2) == eta


@given(st.floats(1e-3, 50), st.floats(1e-12, 0.5))
def test_eta_for_inverts_the_closed_form(epsilon, delta):
    assert closed_form_epsilon(eta_for(epsilon, delta), delta) == pytest.approx(epsilon)
