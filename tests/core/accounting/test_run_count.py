"""The number of runs, against its definition."""

import collections
import math
from decimal import Decimal, FloatOperation, Inexact, localcontext

import numpy as np
import pytest
from scipy import stats

from privfeat.core.accounting.run_count import RunCount
from privfeat.core.noise import draws as noise
from privfeat.core.noise.keys import KeyStream
from tests.combinations import few

# Powers of gamma to these are 1 in float64, and the difference of them 0.
TINY = [5e-324, -5e-324, 1e-310, 1e-250, -1e-150]


def draw(runs, keys):
    return noise.number_of_runs(keys.draw_noise_key(), runs)


def probabilities(eta, gamma, size):
    """Papernot & Steinke 2022, Definition 1, term by term."""
    k = np.arange(1, size + 1)
    if eta == 0.0:
        return (1 - gamma) ** k / (k * math.log(1 / gamma))
    factors = np.cumprod([(i + eta) / (i + 1) for i in range(size)])
    return (1 - gamma) ** k / (gamma**-eta - 1) * factors


@pytest.mark.parametrize("eta", [*TINY, -0.5, -1e-12, 0.0, 1e-12, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("gamma", [0.02, 0.3, 0.9])
def test_run_count_has_the_mean_of_its_definition(eta, gamma):
    p = probabilities(eta if abs(eta) > 1e-9 else 0.0, gamma, 4000)
    assert p.sum() == pytest.approx(1.0, rel=1e-9)
    mean = np.sum(p * np.arange(1, 4001))
    assert RunCount(eta, gamma).mean == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("eta", [-0.5, 0.0, 1.0, 5.0])
@pytest.mark.parametrize("mean", [1.01, 2.0, 10.0, 1000.0])
def test_run_count_from_mean_has_that_mean(eta, mean):
    assert RunCount.from_mean(mean, eta).mean == pytest.approx(mean, rel=1e-9)


def test_run_count_of_shape_one_is_geometric():
    assert RunCount.from_mean(4.0, 1.0).gamma == pytest.approx(0.25)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("eta", [-0.5, 0.0, 1.0, 2.5])
def test_run_count_draws_its_distribution(eta):
    """Chi-square on 1 ... 9 and the rest; false-positive rate 1e-6, 1,000 draws.

    Twice the probability of a single run fails with power > 0.999.
    """
    runs, keys, size = RunCount.from_mean(4.0, eta), KeyStream(20261121), 1000
    drawn = collections.Counter(min(draw(runs, keys), 10) for _ in range(size))
    p = probabilities(eta, runs.gamma, 9)
    expected = size * np.append(p, 1 - p.sum())
    observed = [drawn[k] for k in range(1, 11)]
    assert stats.chisquare(observed, expected).pvalue > 1e-6


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53, 1 - 2**-52])
def test_run_count_is_at_least_one_and_ends(uniform):
    count = RunCount.from_mean(10, 0.0).count_at(uniform)
    assert count == 1 if uniform == 0.0 else 100 < count < 10_000


def test_run_count_has_a_tail_that_52_bits_do_not_reach():
    """Where the mean is 1000, what lay beyond 52 bits made a distance of 2e-9."""
    runs = RunCount.from_mean(10, -0.5)
    below = Decimal(1) - Decimal(2) ** -100
    assert runs.count_at(below) > 1.5 * runs.count_at(1 - 2.0**-52)


def test_run_count_is_drawn_from_four_words(plant):
    runs, words = RunCount.from_mean(10, 0.0), [2**64 - 1, 2**64 - 5, 3, 7]
    plant("random words", lambda key, size: np.array(words[:size], np.uint64))
    with localcontext(prec=80):
        number = sum(word << 64 * (3 - place) for place, word in enumerate(words))
        quantile = Decimal(number) / 2**256
    assert draw(runs, KeyStream(None)) == runs.count_at(quantile) > runs.count_at(0.99)


def test_run_count_is_fresh_without_a_seed():
    runs = RunCount.from_mean(1000, 1.0)
    assert len({draw(runs, KeyStream(None)) for _ in range(8)}) > 1


@pytest.mark.validation
@pytest.mark.parametrize("name", ["eta", "mean_runs"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, True, "1", None, 1001])
def test_run_count_refuses_a_wrong_parameter(name, value):
    good = {"mean_runs": 10.0, "eta": 0.0} | {name: value}
    with pytest.raises((TypeError, ValueError), match=name):
        RunCount.from_mean(good["mean_runs"], good["eta"])


@pytest.mark.validation
@pytest.mark.parametrize("mean", [0.5, 1.0, 1000.5])
def test_run_count_refuses_a_mean_out_of_range(mean):
    with pytest.raises(ValueError, match="mean_runs"):
        RunCount.from_mean(mean, 0.0)


@pytest.mark.parametrize("eta", few(3, TINY))
def test_run_count_of_tiny_shape_is_logarithmic(eta):
    runs, logarithmic = RunCount.from_mean(1.01, eta), RunCount.from_mean(1.01, 0.0)
    assert runs.gamma == logarithmic.gamma
    draws = [
        [draw(law, KeyStream(seed)) for seed in range(200)]
        for law in (runs, logarithmic)
    ]
    assert draws[0] == draws[1]


def test_draw_of_many_runs_does_not_stop_before_the_mode():
    """The first probabilities of a law with mean 1000 are below any float tolerance."""
    runs = RunCount.from_mean(1000.0, eta=10.0)
    draws = [draw(runs, KeyStream(seed)) for seed in range(20)]
    assert 500 < np.mean(draws) < 1500


def test_run_count_does_not_depend_on_what_the_thread_has_set():
    """A trap ended a search that was charged."""
    runs, keys = RunCount.from_mean(10, 0.5), KeyStream(3)
    expected = draw(runs, keys)
    keys = KeyStream(3)
    with localcontext(prec=3) as context:
        context.traps[FloatOperation] = context.traps[Inexact] = True
        assert draw(runs, keys) == expected
