import json
import math
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import given
from hypothesis import strategies as st

from privfeat.core.accounting.conversions import (
    bisect,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    mu_from_rho,
    rho_from_mu,
    zcdp_epsilon,
    zcdp_rho,
)

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "accounting.json").read_text()
)
NOT_NUMBERS = [True, None, "1", 1j, [1.0], np.array([1.0])]


def exact_delta(mu, epsilon):
    """The curve to 50 digits, by numerical integration of the hockey stick.

    ``delta = integral of max(0, f - exp(epsilon) g)`` for the densities ``f`` of
    ``N(mu, 1)`` and ``g`` of ``N(0, 1)``: it is positive above the crossing
    ``epsilon / mu + mu / 2``.
    """
    mp = pytest.importorskip("mpmath")
    with mp.workdps(50):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
        crossing = epsilon / mu + mu / 2

        def gap(x):
            return mp.npdf(x, mu, 1) - mp.exp(epsilon) * mp.npdf(x, 0, 1)

        points = [crossing + step for step in (0, 0.2, 0.5, 1, 2, 4, 8, 16, 40)]
        if crossing < mu:
            points = sorted({*points, *(mu + step for step in range(-8, 9, 4))})
            points = [point for point in points if point >= crossing]
        return mp.quad(gap, points)


@pytest.mark.parametrize("case", GOLDEN["gaussian"])
def test_gaussian_mu_matches_the_golden_noise_multiplier(case):
    mu = gaussian_mu(case["epsilon"], case["delta"])
    assert 1.0 / mu == pytest.approx(case["noise_multiplier"], abs=case["tolerance"])
    assert rho_from_mu(mu) == pytest.approx(case["rho"], abs=case["tolerance"])


@pytest.mark.parametrize("case", GOLDEN["zcdp"])
def test_zcdp_epsilon_matches_the_golden_value(case):
    epsilon = zcdp_epsilon(case["rho"], case["delta"])
    assert epsilon == pytest.approx(case["epsilon"], abs=case["tolerance"])


@pytest.mark.parametrize("case", GOLDEN["noise_saved"])
def test_gaussian_mu_saves_the_stated_noise_over_zcdp(case):
    exact = gaussian_mu(case["epsilon"], case["delta"])
    zcdp = mu_from_rho(zcdp_rho(case["epsilon"], case["delta"]))
    assert 1.0 - zcdp / exact == pytest.approx(case["saved"], abs=case["tolerance"])


@pytest.mark.parametrize(
    ("mu", "epsilon"),
    [
        (1e-3, 1e-4), (0.01, 0.0), (0.1, 0.3), (0.268, 1.0),
        (1.0, 0.0), (1.0, 0.5), (1.0, 6.0), (3.0, 8.0), (10.0, 40.0),
    ],
)  # fmt: skip
def test_gaussian_delta_equals_the_integral_rounded_up(mu, epsilon):
    exact = exact_delta(mu, epsilon)
    assert exact <= gaussian_delta(mu, epsilon) <= exact * (1 + 1e-7)


@pytest.mark.parametrize("mu", [1e-6, 1e-4, 0.01, 0.3, 1.0, 30.0, 1e3, 1e6])
def test_gaussian_delta_is_never_below_the_closed_form(mu):
    """Against 60 digits, from the middle of the curve to delta of 1e-290."""
    mp = pytest.importorskip("mpmath")
    for depth in [0.0, 0.01, 0.5, 1.0, 3.0, 10.0, 25.0, 36.0]:
        epsilon = mu * depth + mu * mu / 2.0
        with mp.workdps(60):
            m, e = mp.mpf(mu), mp.mpf(epsilon)
            exact = mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-e / m - m / 2)
            assert gaussian_delta(mu, epsilon) >= exact
            assert gaussian_delta(mu, epsilon) <= exact * (1 + mp.mpf(1e-6))


@given(st.floats(0.01, 30.0), st.floats(1e-12, 0.1))
def test_gaussian_epsilon_round_trip_never_gains(mu, delta):
    epsilon = gaussian_epsilon(mu, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    if epsilon > 0:
        assert gaussian_mu(epsilon, delta) == pytest.approx(mu, rel=1e-6)
        assert gaussian_delta(mu, epsilon * (1 - 1e-6)) > delta


@given(st.floats(1e-3, 100.0), st.floats(1e-12, 0.1))
def test_gaussian_mu_round_trip_never_gains(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    assert gaussian_delta(mu * (1 + 1e-6), epsilon) > delta


@given(st.floats(1e-6, 1e3), st.floats(1e-12, 0.1))
def test_zcdp_round_trip_never_gains(epsilon, delta):
    rho = zcdp_rho(epsilon, delta)
    assert zcdp_epsilon(rho, delta) <= epsilon
    assert zcdp_epsilon(rho, delta) == pytest.approx(epsilon, rel=1e-10)


@given(st.floats(1e-12, 1e6), st.floats(1e-100, 0.999))
def test_zcdp_conversions_round_against_the_user(value, delta):
    """Against 60 digits."""
    mp = pytest.importorskip("mpmath")
    with mp.workdps(60):
        root = mp.sqrt(-mp.log(mp.mpf(delta)))
        assert zcdp_epsilon(value, delta) >= value + 2 * mp.sqrt(value) * root
        rho = mp.mpf(zcdp_rho(value, delta))
        assert rho + 2 * mp.sqrt(rho) * root <= value


@given(st.floats(1e-3, 100.0), st.floats(1e-12, 0.1))
def test_zcdp_conversion_is_never_below_the_exact_curve(mu, delta):
    assert zcdp_epsilon(rho_from_mu(mu), delta) >= gaussian_epsilon(mu, delta)


@given(st.floats(0.01, 10.0), st.floats(1.01, 3.0), st.floats(1e-10, 0.1))
def test_gaussian_epsilon_rises_with_mu(mu, factor, delta):
    assert gaussian_epsilon(mu * factor, delta) >= gaussian_epsilon(mu, delta)


@given(st.floats(0.01, 10.0), st.floats(1e-10, 0.1), st.floats(1.1, 5.0))
def test_gaussian_epsilon_falls_with_delta(mu, delta, factor):
    assert gaussian_epsilon(mu, delta * factor) <= gaussian_epsilon(mu, delta)


def test_gaussian_epsilon_is_zero_where_delta_is_large():
    assert gaussian_epsilon(1e-3, 0.5) == 0.0


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-8, 1e-3])
def test_gaussian_epsilon_agrees_with_dp_accounting(mu, delta):
    event = GaussianDpEvent(1.0 / mu)
    other = PLDAccountant().compose(event).get_epsilon(delta)
    ours = gaussian_epsilon(mu, delta)
    assert ours <= other * (1 + 1e-6)  # a discretized curve is pessimistic
    assert ours == pytest.approx(other, rel=2e-3, abs=2e-4)


def test_mu_and_rho_are_inverse():
    assert rho_from_mu(mu_from_rho(0.3)) == pytest.approx(0.3, rel=1e-15)
    assert mu_from_rho(0.5) == 1.0


@pytest.mark.validation
@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "convert", [gaussian_epsilon, gaussian_mu, zcdp_epsilon, zcdp_rho]
)
def test_conversions_refuse_a_delta_outside_its_range(convert, delta):
    with pytest.raises(ValueError, match="delta must be in"):
        convert(1.0, delta)


@pytest.mark.validation
@pytest.mark.parametrize("delta", NOT_NUMBERS)
@pytest.mark.parametrize(
    "convert", [gaussian_epsilon, gaussian_mu, zcdp_epsilon, zcdp_rho]
)
def test_conversions_refuse_a_delta_that_is_no_number(convert, delta):
    with pytest.raises(TypeError, match="delta must be"):
        convert(1.0, delta)


BY_VALUE = pytest.mark.parametrize(
    ("convert", "name"),
    [
        (gaussian_epsilon, "mu"),
        (gaussian_mu, "epsilon"),
        (zcdp_epsilon, "rho"),
        (zcdp_rho, "epsilon"),
    ],
)


@pytest.mark.validation
@pytest.mark.parametrize("value", [0, 0.0, -1.0, math.nan, math.inf])
@BY_VALUE
def test_conversions_refuse_a_value_outside_its_range(convert, name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        convert(value, 1e-5)


@pytest.mark.validation
@pytest.mark.parametrize("value", NOT_NUMBERS)
@BY_VALUE
def test_conversions_refuse_a_value_that_is_no_number(convert, name, value):
    with pytest.raises(TypeError, match=f"{name} must be"):
        convert(value, 1e-5)


@pytest.mark.validation
@pytest.mark.parametrize("epsilon", [-1e-9, math.nan, math.inf])
def test_gaussian_delta_refuses_an_epsilon_outside_its_range(epsilon):
    with pytest.raises(ValueError, match="epsilon must be"):
        gaussian_delta(1.0, epsilon)


@pytest.mark.parametrize(
    ("epsilon", "remedy"), [(1e-9, "larger"), (1e300, "smaller"), (1e308, "smaller")]
)
def test_gaussian_mu_refuses_a_budget_no_noise_level_meets(epsilon, remedy):
    with pytest.raises(ValueError, match=f"must allow .* Pass a {remedy} epsilon"):
        gaussian_mu(epsilon, 1e-9)


def test_bisect_ends_where_floats_are_neighbours():
    """With no tolerance at all there is nothing between the ends any more."""
    found = bisect(lambda x: x * x >= 2.0, good=2.0, bad=1.0, tol=0.0)
    assert found * found >= 2.0
    assert math.nextafter(found, 0.0) ** 2 < 2.0


@pytest.mark.parametrize("mu", [20.0, 1e6])
def test_gaussian_delta_is_at_most_one(mu):
    assert gaussian_delta(mu, 0.0) <= 1.0
