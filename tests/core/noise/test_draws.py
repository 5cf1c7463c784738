from fractions import Fraction
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from privfeat.core.accounting.calibration import MIN_DELTA
from privfeat.core.accounting.conversions import gaussian_epsilon
from privfeat.core.noise import draws as noise
from privfeat.core.noise.keys import KeyStream
from tests.core.noise.threefish import threefish_256


@pytest.fixture
def keys():
    return KeyStream(20240607)


def assert_variance(draws, stddev, rate=1e-6):
    statistic = np.sum((np.ravel(draws) / stddev) ** 2)
    low, high = stats.chi2.ppf([rate / 2, 1 - rate / 2], df=np.size(draws))
    assert low < statistic < high


@pytest.mark.statistical
@pytest.mark.parametrize("stddev", [1e-6, 3.0, 1e6])
def test_gaussian_has_the_requested_stddev(keys, stddev):
    """False-positive rate 1e-6 over keys; 5 % error in stddev fails, power > 0.999."""
    assert_variance(noise.gaussian(keys.draw_noise_key(), (100_000,), stddev), stddev)


@pytest.mark.statistical
def test_gaussian_is_normal(keys):
    """Kolmogorov-Smirnov; false-positive rate 1e-6, finds a distance of 0.01."""
    draws = noise.gaussian(keys.draw_noise_key(), (100_000,), 2.0)
    assert stats.kstest(draws, stats.norm(scale=2.0).cdf).pvalue > 1e-6
    assert np.max(np.abs(draws)) > 2.0 * 3.5


@pytest.mark.statistical
def test_gaussian_is_independent_between_entries_and_keys(keys):
    """Correlations of 100,000 pairs; false-positive rate 1e-6 each, finds 0.03."""
    one = noise.gaussian(keys.draw_noise_key(), (50_000, 2), 1.0)
    two = noise.gaussian(keys.draw_noise_key(), (50_000, 2), 1.0)
    columns = np.hstack([one, two, np.roll(one, 1, axis=0)])
    correlations = np.corrcoef(columns.T)[np.triu_indices(6, 1)]
    limit = stats.norm.isf(0.5e-6) / np.sqrt(50_000)
    assert np.max(np.abs(correlations)) < limit


def normal(*numbers):
    """Return the noise of numbers of 128 bits, of which the 65th is the sign."""
    high, low = (
        [number >> 64 for number in numbers],
        [number % 2**64 for number in numbers],
    )
    with jax.enable_x64(True):
        words = (jnp.asarray(np.array(word, np.uint64)) for word in (high, low))
        return np.asarray(noise._normal(*words))


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize(
    "number", [0, 1, 2**20, 2**63, 2**64 - 1, 2**64, 3 * 2**90, 2**126, 2**127 - 1]
)
def test_gaussian_is_the_inverse_of_a_uniform_of_127_bits(number, sign):
    """Against 50 digits, out to 13 standard deviations."""
    mp = pytest.importorskip("mpmath")
    (drawn,) = normal((number >> 64 << 1 | sign) << 64 | number % 2**64)
    with mp.workdps(50):
        uniform = (mp.mpf(number) + mp.mpf(1) / 2) / 2**128
        expected = -mp.sqrt(2) * mp.erfinv(2 * uniform - 1)
    assert drawn == pytest.approx(float(expected if sign else -expected), rel=1e-14)


@pytest.mark.slow
def test_gaussian_reaches_thirteen_standard_deviations():
    np.testing.assert_allclose(normal(0, 1 << 64), [-13.1, 13.1], atol=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 3, 32, 100])
def test_gaussian_is_made_of_the_words_of_its_key(keys, size):
    """Each number of two words that no other has: a block gives two."""
    key = keys.draw_noise_key()
    places = range(noise.n_blocks_for(2 * size))
    words = [threefish_256(key.tolist(), [place, 0, 0, 0]) for place in places]
    high, low = np.array(words, np.uint64).T.reshape(2, -1).tolist()
    numbers = [first << 64 | last for first, last in zip(high, low, strict=True)]
    drawn = noise.gaussian(key, (size, 1), 2.0)
    expected = 2.0 * normal(*numbers)[:size, None]
    np.testing.assert_allclose(drawn, expected, rtol=1e-14)


def test_the_ends_of_the_noise_weigh_less_than_any_delta():
    """What a neighbour can have beyond them, at the smallest noise without a warning.

    The shift is shared by up to 2**32 coordinates, which is at its worst one of them
    or all of them.
    """
    end, largest_shift, n_coordinates = 13.05, 1 / 0.18, 2.0**32
    alone = stats.norm.cdf(largest_shift - end)
    shared = n_coordinates * (
        stats.norm.cdf(largest_shift / np.sqrt(n_coordinates) - end)
        - stats.norm.cdf(-end)
    )
    assert max(alone, shared) < MIN_DELTA / 1000
    assert gaussian_epsilon(largest_shift, 1e-3) > 20.0


def test_number_of_runs_is_drawn_from_256_bits(keys):
    """From the first words of as many blocks, as a number of 80 digits below 1."""
    key = keys.draw_noise_key()
    drawn = noise.number_of_runs(key, SimpleNamespace(count_at=lambda uniform: uniform))
    blocks = [threefish_256(key.tolist(), [place, 0, 0, 0]) for place in range(4)]
    bits = sum(block[0] << 64 * (3 - place) for place, block in enumerate(blocks))
    assert round(Fraction(drawn) * 2**256) == bits


def test_gaussian_draws_in_float64(keys):
    draws = noise.gaussian(keys.draw_noise_key(), (1000,), 1.0)
    assert draws.dtype == np.float64
    assert np.any(draws != draws.astype(np.float32))


def test_gaussian_repeats_with_its_key(keys):
    key = keys.draw_noise_key()
    one, two = (noise.gaussian(key, (3, 2), 1.5) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.statistical
def test_symmetric_gaussian_is_isotropic_in_frobenius_norm(keys):
    """Stddev ``s`` on the diagonal, ``s / sqrt(2)`` off it; false positives 1e-6."""
    draws = np.array(
        [noise.symmetric_gaussian(keys.draw_noise_key(), 4, 3.0) for _ in range(1000)]
    )
    np.testing.assert_array_equal(draws, draws.transpose(0, 2, 1))
    assert_variance(np.diagonal(draws, axis1=1, axis2=2), 3.0)
    lower = draws[:, *np.tril_indices(4, -1)]
    assert_variance(lower, 3.0 / np.sqrt(2.0))
    coordinates = np.hstack([np.diagonal(draws, axis1=1, axis2=2), lower])
    correlations = np.corrcoef(coordinates.T)[np.triu_indices(10, 1)]
    assert np.max(np.abs(correlations)) < stats.norm.isf(0.5e-6) / np.sqrt(1000)


@pytest.mark.statistical
@pytest.mark.parametrize("direction", ["diagonal", "off_diagonal", "rank_one"])
def test_symmetric_gaussian_has_one_stddev_along_every_direction(keys, direction):
    """The noise along a unit matrix is ``N(0, s^2)``; false-positive rate 1e-6."""
    unit = {
        "diagonal": np.diag([1.0, 0.0, 0.0]),
        "off_diagonal": np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]) / np.sqrt(2.0),
        "rank_one": np.full((3, 3), 1.0 / 3.0),
    }[direction]
    draws = [
        np.sum(unit * noise.symmetric_gaussian(keys.draw_noise_key(), 3, 2.0))
        for _ in range(1000)
    ]
    assert_variance(draws, 2.0)


@pytest.mark.statistical
@pytest.mark.parametrize("probability", [0.01, 0.5, 0.99])
def test_bernoulli_has_the_requested_rate(keys, probability):
    """Binomial test of 100,000 draws; false-positive rate 1e-6."""
    mask = noise.bernoulli(keys.draw_noise_key(), 100_000, probability)
    p_value = stats.binomtest(int(mask.sum()), 100_000, probability).pvalue
    assert mask.dtype == bool
    assert p_value > 1e-6


def test_bernoulli_is_empty_for_a_tiny_probability(keys):
    assert not noise.bernoulli(keys.draw_noise_key(), 1000, 1e-12).any()


def test_sampling_and_uniform_draw_52_bits(keys):
    """A float32 uniform is 0 once in ``2**23``: too often for small rates."""
    draws = noise._uniform(keys.draw_noise_key(), 1000)
    assert draws.dtype == np.float64
    assert np.all((draws >= 0.0) & (draws < 1.0) & (draws * 2**52 % 1.0 == 0.0))
    assert np.mean(draws * 2**51 % 1.0 != 0.0) > 0.4


def test_bernoulli_leaves_out_what_is_drawn_at_the_rate_itself(keys):
    key = keys.draw_noise_key()
    first = noise._uniform(key, 1)[0]
    assert not noise.bernoulli(key, 1, first)[0]
    assert noise.bernoulli(key, 1, first + 2.0**-52)[0]


def test_bernoulli_rounds_the_rate_down(keys):
    """It was rounded up: 1e-9 became 2.2e-7 of it more."""
    key = keys.draw_noise_key()
    first = noise._uniform(key, 1)[0]
    assert not noise.bernoulli(key, 1, first + 0.5 * 2.0**-52)[0]
    assert noise.bernoulli(key, 8, 1.0).all()


@pytest.mark.parametrize("draw", [KeyStream.draw, lambda keys: np.zeros(4)])
def test_noise_refuses_other_keys(keys, draw):
    with pytest.raises(TypeError, match="must be four words of 64 bits"):
        noise.gaussian(draw(keys), (2,), 1.0)
    with pytest.raises(TypeError, match="must be four words of 64 bits"):
        noise.bernoulli(draw(keys), 1, 0.5)
