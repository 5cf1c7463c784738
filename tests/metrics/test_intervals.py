import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binomtest

from privfeat.metrics.intervals import (
    Width,
    around,
    expected_count,
    mean_proportion,
    proportion,
)

WIDTH = Width.of(0.95)
FREE = (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("yes", "n"), [(0, 10), (3, 10), (90, 100), (100, 100)])
def test_proportion_without_noise_has_the_interval_of_wilson(yes, n):
    found = proportion(yes, n - yes, FREE, WIDTH)
    expected = binomtest(yes, n).proportion_ci(method="wilson")
    assert found.value == yes / n
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_proportion_holds_what_a_test_of_its_ends_does_not_reject():
    """At the ends the square of the distance is that many times its variance."""
    x, y, (v, w, c), k = 700.0, 300.0, (90.0, 60.0, -20.0), 3
    found = proportion(x, y, (v, w, c), Width.of(0.9, k))
    for a in (found.low, found.high):
        variance = k * (x + y) * a * (1 - a) + (1 - a) ** 2 * v + a**2 * w
        variance -= 2 * a * (1 - a) * c
        square = ((1 - a) * x - a * y) ** 2
        assert square == pytest.approx(ndtri(0.95) ** 2 * variance)


@pytest.mark.parametrize(("yes", "no"), [(5.0, 3.0), (-20.0, 3.0), (-5.0, -5.0)])
def test_proportion_of_noise_alone_is_unknown(yes, no):
    found = proportion(yes, no, (100.0, 100.0, 0.0), WIDTH)
    assert math.isnan(found.value)
    assert (found.low, found.high) == (0.0, 1.0)
    assert "unknown (0 to 1)" in str(found)


def test_value_is_in_its_interval_beyond_the_ends():
    found = proportion([105.0, -5.0], [-5.0, 105.0], (4.0, 4.0, 0.0), WIDTH)
    assert np.all(found.low <= found.value)
    assert np.all(found.value <= found.high)
    assert found.high[0] == 1.0
    assert found.low[1] == 0.0


def test_more_records_of_a_user_make_wider_intervals():
    one, two = (proportion(70, 30, FREE, Width.of(0.95, k)) for k in (1, 4))
    assert two.high - two.low > 1.8 * (one.high - one.low)
    one, two = (expected_count(70, 1.0, Width.of(0.95, k)) for k in (1, 4))
    assert two.high - two.low > 1.8 * (one.high - one.low)


def test_expected_count_holds_what_a_test_of_its_ends_does_not_reject():
    found = expected_count(50.0, 30.0, WIDTH)
    for mean in (found.low, found.high):
        assert (50.0 - mean) ** 2 == pytest.approx(WIDTH.z**2 * (30.0 + mean))
    assert expected_count(-50.0, 30.0, WIDTH).value == 0.0


def test_mean_of_proportions_has_less_width():
    one = proportion(60.0, 40.0, (9.0, 9.0, 0.0), WIDTH)
    found = mean_proportion(np.full(4, 60.0), np.full(4, 40.0), (9.0, 9.0, 0.0), WIDTH)
    assert found.value == pytest.approx(one.value - (18.0 * 0.6 - 9.0) / 100.0**2)
    assert found.value - found.low == pytest.approx((one.value - one.low) / 2)
    assert found.high - found.value == pytest.approx((one.high - one.value) / 2)


def test_mean_with_an_unknown_part_is_unknown():
    found = mean_proportion([50.0, 1.0], [50.0, 1.0], (9.0, 9.0, 0.0), WIDTH)
    one = proportion(50.0, 50.0, (9.0, 9.0, 0.0), WIDTH)
    assert math.isnan(found.value)
    assert (found.low, found.high) == (one.low / 2, (one.high + 1.0) / 2)


@pytest.mark.parametrize("recall", [0.0, 0.9, 0.99, 1.0])
@pytest.mark.parametrize(
    ("n_classes", "n_each"), [(2, 5000), (10, 500), (77, 300), (100, 100)]
)
def test_mean_of_proportions_near_an_end_holds_the_true_one(n_classes, n_each, recall):
    """Where noise carries single proportions beyond 0 and 1, as it must be free to."""
    draw, n_draws, stddev = np.random.default_rng(0), 2000, 8.0
    yes = draw.binomial(n_each, recall, (n_draws, n_classes))
    noisy = np.stack([yes, n_each - yes]) + draw.normal(0, stddev, (2, *yes.shape))
    noise = (stddev**2, stddev**2, 0.0)
    found = [mean_proportion(*one, noise, WIDTH) for one in noisy.swapaxes(0, 1)]
    held = np.mean([one.low <= recall <= one.high for one in found])
    assert held > 0.93  # of 0.95: 4 standard deviations of 2,000 draws, which are fixed


def test_normal_interval_is_cut_to_the_range():
    found = around(0.99, 0.01, WIDTH, 0.0, 1.0)
    assert found.high == 1.0
    assert found.low == pytest.approx(0.99 - 0.1 * WIDTH.z)
