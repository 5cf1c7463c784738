"""The exact sampler against the exact probabilities, and against OpenDP's."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privfeat.core.noise import discrete
from privfeat.core.noise.discrete import (
    bernoulli,
    discrete_gaussian,
    exp_bounds,
    is_below,
)
from privfeat.core.noise.keys import KeyStream

LARGE = [2**30 + 7, 2**80 + 1, 2**116]


@pytest.fixture
def keys():
    return KeyStream(20240607)


class Words:
    """A source of given words; draws beyond them fail."""

    def __init__(self, *words):
        self._words = list(words)

    def draw_words(self, n_words):
        taken, self._words = self._words[:n_words], self._words[n_words:]
        assert len(taken) == n_words
        return np.array(taken, np.uint64)


def p_value_of(draws, variance, counts=None):
    """Chi-square test of the whole numbers against ``exp(-x^2 / (2 variance))``."""
    edge = max(1, math.floor(3.2 * math.sqrt(variance)))
    support = np.arange(-50 * edge, 50 * edge + 1)
    mass = np.exp(-(support.astype(float) ** 2) / (2.0 * variance))
    mass /= mass.sum()
    cells = np.clip(support, -edge, edge) + edge
    expected = np.bincount(cells, weights=mass) * len(draws)
    observed = np.bincount(np.clip(draws, -edge, edge) + edge, minlength=expected.size)
    return stats.chisquare(observed, expected).pvalue


@pytest.mark.statistical
@pytest.mark.parametrize("variance", [1, 2, 3, 7, 12, 100, 5000])
def test_discrete_gaussian_has_the_exact_probabilities(keys, variance):
    """Chi-square; false-positive rate 1e-6. Finds 5 % of a cell of probability 0.1."""
    draws = discrete_gaussian(keys, (100_000,), variance)
    assert p_value_of(draws, variance) > 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("variance", LARGE)
def test_discrete_gaussian_is_normal_where_the_grid_is_fine(keys, variance):
    """Kolmogorov-Smirnov and chi-square; false-positive rate 1e-6 each.

    At these stddevs the discrete law is within 1e-5 of the normal one.
    """
    draws = discrete_gaussian(keys, (100_000,), variance) / math.sqrt(variance)
    assert stats.kstest(draws, stats.norm.cdf).pvalue > 1e-6
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], df=draws.size)
    assert low < np.sum(draws**2) < high
    assert np.max(np.abs(draws)) > 3.5


@pytest.mark.statistical
@pytest.mark.parametrize("variance", LARGE)
def test_discrete_gaussian_has_uniform_low_bits(keys, variance):
    """Chi-square of the residues modulo 64; false-positive rate 1e-6."""
    draws = discrete_gaussian(keys, (100_000,), variance)
    assert stats.chisquare(np.bincount(draws % 64, minlength=64)).pvalue > 1e-6


@pytest.mark.statistical
@pytest.mark.fresh_noise(rate=1e-9)
@pytest.mark.parametrize("variance", [4, 9, 400])
def test_discrete_gaussian_agrees_with_opendp(keys, variance):
    """Two-sample chi-square; false-positive rate 1e-12 over both sources of bits.

    OpenDP draws from the operating system's entropy, so no key fixes this test. For all
    but one key of ours in a thousand the rate is below 1e-9 (Markov's inequality).
    """
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    reference = dp.m.make_gaussian(*space, scale=math.sqrt(variance))([0] * 20_000)
    ours = discrete_gaussian(keys, (100_000,), variance)
    edge = math.floor(2.5 * math.sqrt(variance))
    table = [
        np.bincount(np.clip(draws, -edge, edge) + edge, minlength=2 * edge + 1)
        for draws in (np.array(reference), ours)
    ]
    assert stats.chi2_contingency(table).pvalue > 1e-12


@pytest.mark.statistical
@pytest.mark.parametrize("fault", ["bound", "zero", "block"])
def test_the_tests_notice_a_wrong_sampler(keys, monkeypatch, plant, fault):
    """A bound that cuts probabilities, a zero that comes twice, blocks one too far."""
    genuine = plant.genuine("hat over the discrete Gaussian")
    if fault == "bound":

        def smaller(variance):
            hat = genuine(variance)
            return dataclasses.replace(hat, bound=0.8 * hat.bound)

        plant("hat over the discrete Gaussian", smaller)
    elif fault == "zero":
        monkeypatch.setattr(np, "where", lambda _, __, positive: positive)
    else:
        zeros = plant.genuine("zeros at the end of a word")
        plant("zeros at the end of a word", lambda words: zeros(words | np.uint64(2)))
    assert p_value_of(discrete_gaussian(keys, (100_000,), 7), 7) < 1e-6


@pytest.mark.parametrize("variance", [1, 5, 1000, *LARGE])
def test_float64_decides_as_exact_arithmetic_does(plant, variance):
    """With a margin of everything, every single proposal is decided by fractions."""
    quick = discrete_gaussian(KeyStream(5), (700,), variance)
    plant("margin of float64 decisions", 2.0**70)
    exact = discrete_gaussian(KeyStream(5), (700,), variance)
    np.testing.assert_array_equal(quick, exact)


@pytest.mark.parametrize("variance", [1, 5, 1000, *LARGE])
def test_float64_error_is_far_below_the_margin(variance):
    """Recomputed here for random proposals; the margin is ``2**-36``."""
    hat = discrete._Hat.of(variance)
    words = KeyStream(9).draw_words(300) & np.uint64((1 << hat.shift) - 1)
    for block, offset in zip(np.arange(300) % 12, words.tolist(), strict=True):
        scaled = float(block) + offset * 2.0**-hat.shift
        exponent = block * math.log(2.0)
        exponent -= scaled**2 * (4.0**hat.shift / variance / 2.0)
        approximate = np.exp(exponent) / hat.bound
        x = (int(block) << hat.shift) + offset
        low, high = exp_bounds(Fraction(x * x, 2 * variance), 50)
        factor = Fraction(2 ** int(block)) / Fraction(hat.bound)
        assert factor * high <= 1
        assert abs(Fraction(float(approximate)) - factor * low) < Fraction(1, 2**46)


def test_acceptance_is_a_probability_in_every_block():
    variances = [*range(1, 200), *LARGE]
    for block, variance in itertools.product(range(20), variances):
        hat = discrete._Hat.of(variance)
        x = block << hat.shift
        _, high = exp_bounds(Fraction(x * x, 2 * variance), 50)
        assert 2**block * high <= Fraction(hat.bound)


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 3), Fraction(27, 4)])
@pytest.mark.parametrize("digits", [20, 50, 120])
def test_exp_bounds_hold_the_series_between_them(exponent, digits):
    """Partial sums of ``exp(exponent)`` bound it from below, a geometric tail above."""
    low, high = exp_bounds(exponent, digits)
    term, total, n = Fraction(1), Fraction(0), 0
    while n < 2 * exponent or term > Fraction(1, 10 ** (digits + 20)):
        total += term
        n += 1
        term *= exponent / n
    assert 1 / (total + 2 * term) >= low
    assert 1 / total <= high
    assert high - low <= Fraction(10) ** (2 - digits)


@pytest.mark.parametrize("step", [-1, 1])
def test_is_below_decides_by_later_bits(step):
    """A number that differs from the probability in its last of 192 bits alone."""
    factor, exponent = Fraction(3, 4), Fraction(5, 7)
    low, _ = exp_bounds(exponent, 120)
    digits = math.floor(factor * low * 2**192) + step
    first, second, third = (digits >> shift & (2**64 - 1) for shift in (128, 64, 0))
    assert is_below(Words(second, third), first, factor, exponent) == (step < 0)


def test_is_below_draws_no_more_bits_than_it_needs():
    assert is_below(Words(), 2**62, Fraction(1), Fraction(1, 2))
    assert not is_below(Words(), 2**63, Fraction(1), Fraction(5, 7))


@pytest.mark.parametrize("variance", [1, 5, 1000, *LARGE])
def test_numbers_beside_the_border_are_decided_exactly(variance):
    """Uniform numbers of 64 bits, one unit below and above the probability."""
    hat = discrete._Hat.of(variance)
    offsets = KeyStream(9).draw_words(60) & np.uint64((1 << hat.shift) - 1)
    for block, offset in zip([1, 2, 3] * 20, offsets.tolist(), strict=True):
        x = (block << hat.shift) + offset
        low, _ = exp_bounds(Fraction(x * x, 2 * variance), 50)
        border = math.floor(Fraction(2**block) / Fraction(hat.bound) * low * 2**64)
        for uniform, n_accepted in [(border - 1, 1), (border + 1, 0)]:
            keys = Words(1 << block, offset, uniform)
            assert discrete._accepted(keys, hat, 1).size == n_accepted


@pytest.mark.parametrize("sign", [0, 1 << 63])
@pytest.mark.parametrize("zeros", [0, 5])
def test_accepted_counts_blocks_beyond_one_word(zeros, sign):
    """63 zeros go on in the next words; such a block is rejected nearly surely."""
    hat = discrete._Hat.of(2**40)
    seen = []
    object.__setattr__(hat, "accepts", lambda keys, *draw: seen.append(draw) or True)
    keys = Words(sign, 3, 0, *[0] * zeros, 5 << 4)
    (draw,) = discrete._accepted(keys, hat, 1).tolist()
    block = 63 + 64 * zeros + 4
    assert seen == [(0, block, 3)]
    magnitude = (block << hat.shift) + 3
    assert (draw + magnitude if sign else draw - magnitude) % 2**64 == 0


def test_discrete_gaussian_repeats_with_a_seed_alone():
    draws = [discrete_gaussian(KeyStream(seed), (50,), 10**9) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert np.all(draws[0] != draws[2])
    fresh = [discrete_gaussian(KeyStream(None), (50,), 10**9) for _ in range(2)]
    assert np.all(fresh[0] != fresh[1])


@pytest.mark.statistical
def test_discrete_gaussian_is_independent_between_entries_and_calls(keys):
    """Correlations of 50,000 pairs; false-positive rate 1e-6 each, finds 0.03."""
    one, two = (discrete_gaussian(keys, (50_000, 2), 2**60) for _ in range(2))
    columns = np.hstack([one, two, np.roll(one, 1, axis=0)]).astype(float)
    correlations = np.corrcoef(columns.T)[np.triu_indices(6, 1)]
    assert np.max(np.abs(correlations)) < stats.norm.isf(0.5e-6) / np.sqrt(50_000)


@pytest.mark.parametrize("shape", [(), (0,), (3, 2), (100_000,)])
def test_discrete_gaussian_has_the_requested_shape(keys, shape):
    draws = discrete_gaussian(keys, shape, 100)
    assert draws.shape == shape
    assert draws.dtype == np.int64


@pytest.mark.validation
@pytest.mark.parametrize("variance", [0, -1, 2**116 + 1, 1.0, math.nan, True, "1"])
def test_discrete_gaussian_refuses_a_wrong_variance(keys, variance):
    with pytest.raises((TypeError, ValueError), match="variance must be"):
        discrete_gaussian(keys, (3,), variance)


@pytest.mark.statistical
@pytest.mark.parametrize("probability", [1e-3, 0.1, 0.5, 1.0 - 2.0**-10])
def test_bernoulli_has_the_requested_rate(keys, probability):
    """Binomial test of 100,000 draws; false-positive rate 1e-6."""
    mask = bernoulli(keys, 100_000, probability)
    p_value = stats.binomtest(int(mask.sum()), 100_000, probability).pvalue
    assert mask.dtype == bool
    assert p_value > 1e-6


def test_bernoulli_decides_ties_by_more_bits():
    """``1/2 + 3/4 2**-64``: a tie in the first word needs one below 3/4 in the next."""
    probability = Fraction(1, 2) + Fraction(3, 4) / 2**64
    half, limit = 2**63, 3 * 2**62
    keys = Words(half - 1, half + 1, half, half, limit - 1, limit)
    assert bernoulli(keys, 4, probability).tolist() == [True, False, True, False]


def test_bernoulli_takes_a_float_for_the_number_it_holds():
    """A tie of 0.1 with its first 64 bits: the rest of the float is zero."""
    whole = Fraction(0.1) * 2**64
    assert whole.denominator == 1
    assert bernoulli(Words(int(whole) - 1, int(whole)), 2, 0.1).tolist() == [
        True,
        False,
    ]
