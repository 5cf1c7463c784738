import math

import pytest
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st

from privfeat.analysis.tan import (
    TAN,
    closed_form_epsilon,
    constant_tan_settings,
    simulate,
)
from privfeat.core.accounting.plan import PlannedRelease, Query

ORDERS = (*range(2, 33), 36, 40, 48, 64, 96, 128, 256, 512, 1024)


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


@pytest.mark.parametrize("n_iter", [1, 1000])
@pytest.mark.parametrize("noise", [0.5, 1.0, 2.5, 40.0])
@pytest.mark.parametrize("q", [1e-5, 0.01, 0.999, 1.0])
def test_renyi_epsilons_are_those_of_dp_accounting(q, noise, n_iter):
    query = Query("gradient", 1.0, count=n_iter, sampling_prob=q)
    event = PlannedRelease(query, noise).event()
    for delta in (1e-30, 1e-7):
        found = TAN(q, noise, n_iter).epsilon(delta, accountant="rdp")
        least = RdpAccountant(ORDERS).compose(event).get_epsilon(delta)
        assert least <= found <= (1.0 + 2.0**-19) * least


def test_renyi_epsilons_that_nothing_bounds_are_infinite():
    assert TAN(0.5, 1e-200, 1).epsilon(1e-5, accountant="rdp") == math.inf
    # the noise is so large that every divergence would be rounded to zero
    assert TAN(1e-9, 1e200, 1).epsilon(1e-5, accountant="rdp") == math.inf


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


def test_eta_step_of_figure_3_is_that_of_imagenet(golden_tan):
    """1.2M records as the paper rounds them: 3.9e-3 to the digits of the caption."""
    eta_step = TAN(16384 / 1.2e6, 2.5, 72_000).eta_step
    assert round(eta_step, 4) == golden_tan["figure_3"]["eta_step"]


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


def test_settings_keep_the_total_noise():
    reference = TAN(16384 / 1_281_167, 2.5, 72_000)
    for choice in constant_tan_settings(16384, 72_000, 8.0):
        tan = TAN(choice.batch_size / 1_281_167, 2.5, choice.n_iter)
        assert tan.eta == pytest.approx(reference.eta, rel=1e-4)
        assert choice.learning_rate * choice.n_iter == pytest.approx(8.0 * 72_000)


def test_settings_are_those_of_table_4():
    best = constant_tan_settings(16384, 72_000, 8.0, step_factors=[0.25])[0]
    assert best == (32768, 18_000, 32.0)
