import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from privfeat.core import noise
from privfeat.core.accounting import gaussian_epsilon
from privfeat.core.calibration import MIN_DELTA
from privfeat.core.keys import KeyStream

KEY = KeyStream(1).draw()


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
    assert_variance(noise.gaussian(keys.draw(), (100_000,), stddev), stddev)


@pytest.mark.statistical
def test_gaussian_is_normal(keys):
    """Kolmogorov-Smirnov; false-positive rate 1e-6, finds a distance of 0.01."""
    draws = noise.gaussian(keys.draw(), (100_000,), 2.0)
    assert stats.kstest(draws, stats.norm(scale=2.0).cdf).pvalue > 1e-6
    assert np.max(np.abs(draws)) > 2.0 * 3.5


@pytest.mark.statistical
def test_gaussian_is_independent_between_entries_and_keys(keys):
    """Correlations of 100,000 pairs; false-positive rate 1e-6 each, finds 0.03."""
    one = noise.gaussian(keys.draw(), (50_000, 2), 1.0)
    two = noise.gaussian(keys.draw(), (50_000, 2), 1.0)
    columns = np.hstack([one, two, np.roll(one, 1, axis=0)])
    correlations = np.corrcoef(columns.T)[np.triu_indices(6, 1)]
    limit = stats.norm.isf(0.5e-6) / np.sqrt(50_000)
    assert np.max(np.abs(correlations)) < limit


def bits_of(high, low):
    """Stand in for random bits: the given words, in turn."""
    words = [np.array(high, np.uint64), np.array(low, np.uint64)]
    return lambda key, shape, dtype: jnp.asarray(words.pop(0), dtype).reshape(shape)


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize(
    "number", [0, 1, 2**20, 2**63, 2**64 - 1, 2**64, 3 * 2**90, 2**126, 2**127 - 1]
)
def test_gaussian_is_the_inverse_of_a_uniform_of_127_bits(monkeypatch, number, sign):
    """Against 50 digits, out to 13 standard deviations."""
    mp = pytest.importorskip("mpmath")
    high, low = number >> 64 << 1 | sign, number & (2**64 - 1)
    monkeypatch.setattr(jax.random, "bits", bits_of([high], [low]))
    with jax.enable_x64(True):
        (drawn,) = np.asarray(noise._gaussian.__wrapped__(KEY, (1,), 1.0))
    with mp.workdps(50):
        uniform = (mp.mpf(number) + mp.mpf(1) / 2) / 2**128
        expected = -mp.sqrt(2) * mp.erfinv(2 * uniform - 1)
    assert drawn == pytest.approx(float(expected if sign else -expected), rel=1e-14)


def test_gaussian_reaches_thirteen_standard_deviations(monkeypatch):
    monkeypatch.setattr(jax.random, "bits", bits_of([0, 1], [0, 0]))
    with jax.enable_x64(True):
        ends = np.asarray(noise._gaussian.__wrapped__(KEY, (2,), 2.0))
    np.testing.assert_allclose(ends, [-26.2, 26.2], atol=0.05)


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


def test_gaussian_draws_in_float64(keys):
    draws = noise.gaussian(keys.draw(), (1000,), 1.0)
    assert draws.dtype == np.float64
    assert np.any(draws != draws.astype(np.float32))


def test_gaussian_repeats_with_its_key(keys):
    key = keys.draw()
    one, two = (noise.gaussian(key, (3, 2), 1.5) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.statistical
def test_symmetric_gaussian_is_isotropic_in_frobenius_norm(keys):
    """Stddev ``s`` on the diagonal, ``s / sqrt(2)`` off it; false positives 1e-6."""
    draws = np.array(
        [noise.symmetric_gaussian(keys.draw(), 4, 3.0) for _ in range(1000)]
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
        np.sum(unit * noise.symmetric_gaussian(keys.draw(), 3, 2.0))
        for _ in range(1000)
    ]
    assert_variance(draws, 2.0)


@pytest.mark.statistical
@pytest.mark.parametrize("probability", [0.01, 0.5, 0.99])
def test_bernoulli_has_the_requested_rate(keys, probability):
    """Binomial test of 100,000 draws; false-positive rate 1e-6."""
    mask = noise.bernoulli(keys.draw(), 100_000, probability)
    p_value = stats.binomtest(int(mask.sum()), 100_000, probability).pvalue
    assert mask.dtype == bool
    assert p_value > 1e-6


def test_bernoulli_is_empty_for_a_tiny_probability(keys):
    assert not noise.bernoulli(keys.draw(), 1000, 1e-12).any()


def test_sampling_and_uniform_draw_in_float64(keys, monkeypatch):
    """A float32 uniform is 0 once in ``2**23``: too often for small rates."""
    monkeypatch.setattr(noise, "_BLOCK", 100)
    drawn, genuine = [], noise.jax.random.uniform

    def watched(*arguments):
        drawn.append(genuine(*arguments))
        return drawn[-1]

    monkeypatch.setattr(noise.jax.random, "uniform", watched)
    noise.bernoulli(keys.draw(), 100, 0.5)
    noise.uniform(keys.draw())
    assert [draws.dtype for draws in drawn] == [np.float64] * 2
    assert any(float(draw) * 2**32 % 1.0 for draw in drawn[0])


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 9])
def test_bernoulli_tosses_coins_in_blocks_of_one_shape(keys, monkeypatch, size):
    shapes, drawn, genuine = set(), [], noise.jax.random.uniform

    def watched(key, shape, dtype):
        shapes.add(shape)
        drawn.extend(np.asarray(genuine(key, shape, dtype)))
        return np.asarray(drawn[-shape[0] :])

    monkeypatch.setattr(noise, "_BLOCK", 4)
    monkeypatch.setattr(noise.jax.random, "uniform", watched)
    mask = noise.bernoulli(keys.draw(), size, 0.5)
    assert shapes <= {(4,)}
    assert len(set(drawn)) == len(drawn) == -(-size // 4) * 4
    assert mask.tolist() == [draw < 0.5 for draw in drawn[:size]]


def test_bernoulli_leaves_out_what_is_drawn_at_the_rate_itself(keys, monkeypatch):
    monkeypatch.setattr(noise.jax.random, "uniform", lambda *_: np.full(9, 0.5))
    assert not noise.bernoulli(keys.draw(), 3, 0.5).any()
