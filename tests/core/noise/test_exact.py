"""Whole totals plus discrete noise: layout, parameters, and the theorem's numbers."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.conversions import gaussian_delta
from privfeat.core.accounting.plan import Query
from privfeat.core.noise import exact
from privfeat.core.noise.exact import check_planned, grid_variance, noisy_total
from privfeat.core.noise.keys import KeyStream
from privfeat.core.sums.statistics import exact_class_sums, exact_gradient, exact_gram
from privfeat.core.sums.totals import ExactSum
from privfeat.exceptions import PrivacyError
from tests.core.mechanisms import charged_mechanism


def gaussian_sum(variance, center, reach=60):
    """Return the sum of ``exp(-(j - center)^2 / (2 variance))`` over whole j."""
    j = np.arange(-reach, reach + 1)
    return math.fsum(np.exp(-((j - center) ** 2) / (2.0 * variance)))


def discrete_delta(variance, shift, epsilon):
    """Return the smallest delta of whole-number noise at a whole shift: the sum of
    ``max(0, P(x) - exp(epsilon) P(x - shift))``, [1]_ Theorem 7 before rewriting."""
    reach = math.ceil(30.0 * math.sqrt(variance)) + shift
    x = np.arange(-reach, reach + 1)
    log_ratio = (shift**2 - 2.0 * shift * x) / (2.0 * variance)  # of P(x) to shifted
    mass = np.exp(-(x.astype(float) ** 2) / (2.0 * variance))
    mass /= math.fsum(mass)
    return math.fsum(mass * np.maximum(0.0, -np.expm1(epsilon - log_ratio)))


def test_smoothing_makes_the_sum_constant_as_stated():
    """``h(y)`` is within ``2 exp(-2 pi^2 r^2)`` of constant, and attains it."""
    for variance in (0.2, 0.3, 0.5):
        ideal = math.sqrt(2.0 * math.pi * variance)
        eta = 2.0 * math.exp(-2.0 * math.pi**2 * variance)
        worst = max(
            abs(gaussian_sum(variance, y) / ideal - 1.0)
            for y in np.linspace(0.0, 1.0, 33)
        )
        assert 0.99 * eta < worst < 1.01 * eta


def test_theorem_has_the_numbers_of_its_smoothing():
    eta = 2.0 * math.exp(-2.0 * math.pi**2 * exact.SMOOTHING) * (1.0 + 1e-9)
    assert eta < 1.1e-34
    assert math.log1p(eta) - math.log1p(-eta) < 3e-34


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0, 3.0])
def test_discrete_noise_is_as_private_as_the_planned_noise(epsilon):
    """Its exact privacy curve stays below that of the continuous noise it replaces."""
    for stddev, shift in itertools.product([0.3, 1.0, 2.5, 10.0, 40.0], [1, 2, 7]):
        variance = grid_variance(stddev, 1.0)
        delta = discrete_delta(variance, shift, epsilon)
        assert delta <= gaussian_delta(shift / stddev, epsilon) + 1e-15


def test_discrete_noise_without_smoothing_would_be_less_private():
    """What the test above must be able to find."""
    deltas = [
        (discrete_delta(1, 1, epsilon), gaussian_delta(1.0, epsilon))
        for epsilon in np.linspace(0.0, 1.0, 21)
    ]
    assert any(discrete > continuous * 1.01 for discrete, continuous in deltas)


@pytest.mark.parametrize("stddev", [1e-3, 1.5, 1e4 / 3.0])
@pytest.mark.parametrize("grid_step", [2.0**-40, 1.0])
def test_grid_variance_rounds_up(stddev, grid_step):
    planned = (Fraction(stddev) / Fraction(grid_step)) ** 2
    assert planned + 4 <= grid_variance(stddev, grid_step) < planned + 5
    halved = grid_variance(stddev, grid_step, halved=True)
    assert planned / 2 + 4 <= halved < planned / 2 + 5


def test_grid_variance_refuses_noise_beyond_the_grid():
    assert grid_variance(2.0**57, 1.0) == 2**114 + 4
    with pytest.raises(PrivacyError, match="noise must be at most"):
        grid_variance(2.0**58, 1.0)


def test_a_plan_whose_noise_is_beyond_the_grid_is_refused_before_its_charge():
    plan = plan_releases([Query("few", 1.0), Query("many", 2.0)], noise_multiplier=1.0)
    steps = {"few": 1.0, "many": 1.0}
    check_planned(plan, steps.__getitem__)
    for name in steps:
        with pytest.raises(PrivacyError, match="noise must be at most"):
            check_planned(plan, (steps | {name: 2.0**-58}).__getitem__)


@pytest.mark.parametrize("symmetric", [True, False])
def test_noisy_total_lies_on_the_grid(symmetric):
    grid_step = 2.0**-30
    total = np.arange(16).reshape(4, 4) + np.arange(16).reshape(4, 4).T
    exact = ExactSum(total, grid_step)
    value = noisy_total(KeyStream(1), exact, 1.0, symmetric=symmetric)
    assert value.dtype == np.float64
    assert np.all(value / grid_step == np.round(value / grid_step))
    assert np.array_equal(value, value.T) == symmetric


def test_noisy_total_is_the_total_plus_noise():
    """The same bits give the same noise, whatever the total is."""
    total = np.array([[5, 2**40], [2**40, -3]])

    def noisy(total, symmetric):
        exact = ExactSum(total, 0.5)
        return noisy_total(KeyStream(1), exact, 1e3, symmetric=symmetric)

    for symmetric in (True, False):
        difference = noisy(total, symmetric) - noisy(np.zeros_like(total), symmetric)
        np.testing.assert_array_equal(difference, 0.5 * total)


@pytest.mark.parametrize("shape", [(), (3,), (0, 2)])
def test_noisy_total_keeps_the_shape(shape):
    total = np.zeros(shape, np.int64)
    found = noisy_total(KeyStream(1), ExactSum(total), 1.0, symmetric=False)
    assert found.shape == shape


def test_noisy_total_does_not_tell_how_a_total_is_split():
    """Rounded once, after the noise: a function of the sum and the noise alone."""
    whole = 3 * 2**40 + np.arange(5)
    for low in (whole, whole - 2**40, whole + 5 * 2**40):
        exact = ExactSum(low, 1.0, carry=(whole - low) >> 40)
        found = noisy_total(KeyStream(1), exact, 2.0**56, symmetric=False)
        expected = noisy_total(KeyStream(1), ExactSum(whole), 2.0**56, symmetric=False)
        np.testing.assert_array_equal(found, expected)


def test_noisy_total_wraps_silently():
    """Residues modulo ``2**64`` are post-processing; an error would tell of the sum."""
    total = np.array(2**63 - 1, np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = {
            float(noisy_total(keys, ExactSum(total), 2.0**50, symmetric=False))
            for keys in map(KeyStream, range(20))
        }
    assert min(values) < 0.0 < max(values)


@pytest.mark.statistical
@pytest.mark.parametrize("grid_step", [1.0, 2.0**-40])
def test_symmetric_noise_is_isotropic_in_frobenius_norm(grid_step):
    """Parameter ``c^2 + 4`` on the diagonal, ``c^2 / 2 + 4`` off it; rate 1e-6."""
    keys, total = KeyStream(4), np.zeros((40, 40), np.int64)
    exact = ExactSum(total, grid_step)
    draws = np.array([noisy_total(keys, exact, 9.0, symmetric=True) for _ in range(30)])
    for part, planned in [
        (np.diagonal(draws, axis1=1, axis2=2), 81.0),
        (draws[:, *np.tril_indices(40, -1)], 40.5),
    ]:
        variance = planned + 4.5 * grid_step**2  # 4, and a half that rounds up
        low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], df=part.size)
        # 0.5 is the most that rounding up can be off
        assert low * (1 - 0.5 * grid_step**2 / variance) < np.sum(part**2) / variance
        assert np.sum(part**2) / variance < high * (1 + 0.5 * grid_step**2 / variance)


def mechanism(*queries, arithmetic="exact", **budget):
    plan = plan_releases(queries, **budget)
    return charged_mechanism(plan, KeyStream(3), arithmetic)


def test_mechanism_refuses_a_sum_that_is_not_whole():
    made = mechanism(Query("gram", 1.0), epsilon=1.0)
    with pytest.raises(PrivacyError, match="must be of int64"):
        made.release("gram", ExactSum(np.zeros(3)))


def test_mechanism_draws_nothing_in_floating_point(plant):
    def fail(*_):
        raise AssertionError

    for name in (
        *("Gaussian noise", "symmetric Gaussian noise"),
        "Poisson sample",
    ):
        plant(name, fail)
    query = Query("gradient", 1.0, count=2, sampling_prob=0.3)
    made = mechanism(query, noise_multiplier=2.0, accounting="pld")
    total = ExactSum(np.zeros((3, 3), np.int64), 2.0**-30)
    for symmetric in (True, False):
        made.release("gradient", total, symmetric=symmetric)
    assert 0 < np.sum(made.sampler("gradient")(1000)) < 1000


@pytest.mark.statistical
def test_mechanism_draws_the_declared_stddev():
    """Chi-square test; false-positive rate 1e-6, finds an error of 5 %."""
    made = mechanism(Query("sum", 1.0), noise_multiplier=2.0)
    value = made.release("sum", ExactSum(np.zeros(20_000, np.int64), 2.0**-20)).value
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], df=value.size)
    assert low < np.sum((value / made.noise_stddevs["sum"]) ** 2) < high


@pytest.mark.validation
@pytest.mark.parametrize("arithmetic", ["", "float32", None, True])
def test_mechanism_refuses_an_unknown_arithmetic(arithmetic):
    with pytest.raises((TypeError, ValueError), match="arithmetic must be"):
        mechanism(Query("sum", 1.0), epsilon=1.0, arithmetic=arithmetic)


@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
def test_totals_have_the_same_bits_for_any_chunks_and_order(grid_rows, chunk_rows):
    rng = np.random.default_rng(3)
    rows = rng.integers(-(2**18), 2**18, (300, 4))
    labels, coef = rng.integers(0, 3, 300), rng.normal(size=(3, 4))

    def totals(order, chunk_rows):
        one = grid_rows(
            rows[order], labels[order], step=2.0**-20, chunk_rows=chunk_rows
        )
        gradient = exact_gradient(one, coef, loss="softmax", clip_norm=0.5)
        return exact_gram(one), exact_class_sums(one, 3), gradient

    for one, two in zip(
        totals(np.arange(300), 1024),
        totals(rng.permutation(300), chunk_rows),
        strict=True,
    ):
        assert one.total.dtype == two.total.dtype == np.int64
        assert one.grid_step == two.grid_step
        np.testing.assert_array_equal(one.total, two.total)
