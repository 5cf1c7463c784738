import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.noise.keys import KeyStream
from privfeat.core.sums.processes import Team
from privfeat.core.sums.totals import ExactSum
from privfeat.exceptions import PrivacyError
from tests.core.mechanisms import charged_mechanism
from tests.teams import Board, Thread


@pytest.fixture
def queries():
    return [
        Query("gram", 2.0),
        Query("gradient", 0.5, count=2),
        Query("blocks", 1.0, n_blocks=3),
    ]


@pytest.fixture
def plan(queries):
    return plan_releases(queries, epsilon=1.0)


@pytest.fixture
def mechanism(plan):
    return charged_mechanism(plan, KeyStream(3))


@pytest.fixture
def exact():
    return ExactSum(np.zeros((40, 40)))


@pytest.mark.parametrize(
    ("name", "limit"), [("gram", 1), ("gradient", 2), ("blocks", 3)]
)
def test_mechanism_releases_no_more_than_planned(mechanism, exact, name, limit):
    for _ in range(limit):
        mechanism.release(name, exact)
    with pytest.raises(PrivacyError, match=f"{name} must be released as often"):
        mechanism.release(name, exact)


def test_mechanism_counts_what_an_interrupted_run_drew(mechanism, exact):
    mechanism.count_as_drawn("gradient", 1)
    mechanism.count_as_drawn("blocks", 3)
    mechanism.release("gradient", exact)
    for name in ("gradient", "blocks"):
        with pytest.raises(PrivacyError, match=f"{name} must be released as often"):
            mechanism.release(name, exact)
    mechanism.release("gram", exact)
    mechanism.check_complete()


@pytest.mark.parametrize("count", [-1, 3, math.nan])
def test_mechanism_counts_no_more_than_planned(mechanism, exact, count):
    with pytest.raises(PrivacyError, match="gradient that were drawn must be at most"):
        mechanism.count_as_drawn("gradient", count)
    mechanism.release("gradient", exact)


def test_mechanism_refuses_a_query_that_was_not_planned(mechanism, exact):
    with pytest.raises(PrivacyError, match="other must be released as often"):
        mechanism.release("other", exact)


def test_mechanism_notices_an_unfinished_plan(mechanism, exact):
    mechanism.release("gram", exact)
    with pytest.raises(PrivacyError, match="all planned releases must be drawn"):
        mechanism.check_complete()


def test_mechanism_accepts_a_finished_plan(mechanism, exact):
    for name, count in [("gram", 1), ("gradient", 2), ("blocks", 3)]:
        for _ in range(count):
            mechanism.release(name, exact)
    mechanism.check_complete()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_mechanism_refuses_a_sum_that_is_not_finite(mechanism, bad):
    with pytest.raises(PrivacyError, match="the exact sum of gram must be finite"):
        mechanism.release("gram", ExactSum(np.array([1.0, bad])))


@pytest.mark.statistical
@pytest.mark.parametrize("symmetric", [True, False])
def test_mechanism_draws_the_declared_stddev(plan, mechanism, exact, symmetric):
    """Chi-square test; false-positive rate 1e-6, finds an error of 15 %."""
    release = mechanism.release("gram", exact, symmetric=symmetric)
    draws = release.value.ravel()
    if symmetric:
        lower = release.value[np.tril_indices(40, -1)]
        draws = np.concatenate([np.diag(release.value), math.sqrt(2.0) * lower])
        np.testing.assert_array_equal(release.value, release.value.T)
    stddev = plan["gram"].noise_multiplier * 2.0
    assert release.noise_stddev == stddev
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], df=draws.size)
    assert low < np.sum((draws / stddev) ** 2) < high


@pytest.mark.statistical
def test_mechanism_draws_anew_for_every_release(mechanism, exact):
    """Correlations of 1,600 pairs; false-positive rate 1e-6 each, finds 0.13."""
    draws = [mechanism.release("blocks", exact).value.ravel() for _ in range(3)]
    draws += [mechanism.release("gradient", exact).value.ravel() for _ in range(2)]
    correlations = np.corrcoef(draws)[np.triu_indices(5, 1)]
    assert np.max(np.abs(correlations)) < stats.norm.isf(5e-7) / math.sqrt(1600)


def test_mechanism_adds_the_noise_to_the_sum(queries):
    def value(total):
        mechanism = charged_mechanism(plan_releases(queries, epsilon=1.0), KeyStream(3))
        return mechanism.release("gram", ExactSum(total)).value

    total = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(value(total) - value(0.0 * total), total, atol=1e-12)


def test_mechanism_leaves_the_sum_alone(mechanism):
    exact = ExactSum(np.ones(3))
    mechanism.release("gram", exact)
    np.testing.assert_array_equal(exact.value, np.ones(3))


def test_mechanism_returns_a_read_only_release(mechanism, exact):
    release = mechanism.release("gram", exact)
    with pytest.raises(ValueError, match="read-only"):
        release.value[0, 0] = 0.0
    with pytest.raises(AttributeError):
        release.noise_stddev = 0.0


@pytest.mark.parametrize("arithmetic", ["float64", "exact"])
def test_mechanism_without_privacy_returns_the_sum(queries, arithmetic):
    plan = plan_releases(queries, epsilon=math.inf)
    mechanism = charged_mechanism(plan, KeyStream(None), arithmetic)
    release = mechanism.release("gram", ExactSum(np.ones(3, np.int64), 0.5))
    np.testing.assert_array_equal(release.value, np.full(3, 0.5))
    assert release.noise_stddev == 0.0


def test_a_private_mechanism_alone_needs_sums_that_are_exact(queries, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    with pytest.raises(PrivacyError, match="IEEE 754"):
        charged_mechanism(plan_releases(queries, epsilon=1.0), KeyStream(3))
    charged_mechanism(plan_releases(queries, epsilon=math.inf), KeyStream(3))


def test_mechanism_samples_nothing_when_all_records_take_part(mechanism):
    assert mechanism.sampler("gradient") is None


@pytest.mark.statistical
def test_mechanism_samples_with_the_planned_probability():
    """Binomial test of 20,000 draws; false-positive rate 1e-6. Masks differ."""
    query = Query("gradient", 1.0, count=2, sampling_prob=0.2)
    plan = plan_releases([query], noise_multiplier=2.0, accounting="pld")
    sampler = charged_mechanism(plan, KeyStream(5)).sampler("gradient")
    masks = [sampler(10_000) for _ in range(2)]
    assert np.any(masks[0] != masks[1])
    assert stats.binomtest(int(np.sum(masks)), 20_000, 0.2).pvalue > 1e-6


@pytest.mark.parametrize("stddev", [0.0, math.inf, math.nan])
def test_mechanism_refuses_noise_that_is_none(plan, exact, monkeypatch, stddev):
    """Whatever went wrong before: nothing is released without its noise."""
    mechanism = charged_mechanism(plan, KeyStream(3))
    monkeypatch.setitem(mechanism.noise_stddevs, "gram", stddev)
    with pytest.raises(PrivacyError, match="noise of gram must be finite and > 0"):
        mechanism.release("gram", exact)


@pytest.mark.parametrize("l2_sensitivity", [1e-9, 1e-3, 1.0, 1e9])
@pytest.mark.parametrize("symmetric", [True, False])
def test_mechanism_adds_noise_of_any_size(exact, l2_sensitivity, symmetric):
    """Of 1,600 draws with a standard error of 1.8 %: within 15 % of the stddev."""
    plan = plan_releases([Query("gram", l2_sensitivity)], epsilon=1.0)
    mechanism = charged_mechanism(plan, KeyStream(3))
    found = mechanism.release("gram", exact, symmetric=symmetric)
    assert np.all(found.value != 0.0)
    spread = np.sqrt(np.mean(found.value**2)) * (math.sqrt(2.0) if symmetric else 1.0)
    assert 0.85 < spread / (l2_sensitivity * plan["gram"].noise_multiplier) < 1.15


@pytest.mark.parametrize("stddev", [1.0, 2.0])
@pytest.mark.parametrize("arithmetic", ["float64", "exact"])
def test_mechanism_adds_noise_of_a_round_stddev(plan, monkeypatch, stddev, arithmetic):
    mechanism = charged_mechanism(plan, KeyStream(3), arithmetic)
    monkeypatch.setitem(mechanism.noise_stddevs, "gram", stddev)
    found = mechanism.release("gram", ExactSum(np.zeros((4, 4), np.int64), 2.0**-30))
    assert np.count_nonzero(found.value) == 16


def test_mechanism_adds_noise_in_the_first_process_alone(plan, exact, plant):
    """Before the first one's value is sent to all, the others hold the exact sum."""

    plant("team that draws noise", lambda: Alone(1, 2))
    found = charged_mechanism(plan, KeyStream(3, 1)).release("gram", exact)
    np.testing.assert_array_equal(found.value, exact.value)


class Alone(Team):
    """Says what it holds itself; nothing is sent."""

    def total(self, values, *_, **__):
        return values

    def from_first(self, values, *_):
        return values


def test_processes_release_their_total_with_one_noise(plan, plant):
    """Bit for bit what one process releases of all records."""
    parts = np.arange(6.0), np.full(6, 0.25)
    whole = charged_mechanism(plan, KeyStream(3)).release("gram", ExactSum(sum(parts)))
    board, mechanisms = Board(), []
    for index in range(2):
        plant("team that draws noise", lambda i=index: Thread(i, 2, board=board))
        mechanisms.append(charged_mechanism(plan, KeyStream(3, index)))
    with ThreadPoolExecutor(2) as threads:
        found = threads.map(
            lambda mechanism, part: mechanism.release("gram", ExactSum(part)).value,
            mechanisms,
            parts,
        )
    for value in found:
        np.testing.assert_array_equal(value, whole.value)


@pytest.mark.parametrize("l2_sensitivity", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("symmetric", [True, False])
def test_exact_mechanism_adds_noise_of_any_size(l2_sensitivity, symmetric):
    """Of 1,600 draws with a standard error of 1.8 %: within 15 % of the stddev."""
    plan = plan_releases([Query("gram", l2_sensitivity)], epsilon=1.0)
    exact = ExactSum(np.zeros((40, 40), np.int64), 2.0**-30)
    mechanism = charged_mechanism(plan, KeyStream(3), "exact")
    found = mechanism.release("gram", exact, symmetric=symmetric)
    spread = np.sqrt(np.mean(found.value**2)) * (math.sqrt(2.0) if symmetric else 1.0)
    assert 0.85 < spread / (l2_sensitivity * plan["gram"].noise_multiplier) < 1.15
    assert np.all(
        found.value / exact.grid_step == np.round(found.value / exact.grid_step)
    )


@pytest.mark.parametrize("index", [0, 1])
def test_exact_mechanism_adds_noise_in_the_first_process_alone(plan, plant, index):
    plant("team that draws noise", lambda: Alone(index, 2))
    exact = ExactSum(np.zeros((4, 4), np.int64), 2.0**-30)
    mechanism = charged_mechanism(plan, KeyStream(3, index), "exact")
    found = mechanism.release("gram", exact)
    assert np.any(found.value != 0.0) == (index == 0)


def test_mechanism_draws_samples_by_its_arithmetic(plant):
    query = Query("gradient", 1.0, sampling_prob=0.2)
    plan = plan_releases([query], noise_multiplier=2.0, accounting="pld")
    plant("exact Poisson sample", lambda *_: "exactly")
    plant("Poisson sample", lambda *_: "in float64")
    for arithmetic, drawn in (("exact", "exactly"), ("float64", "in float64")):
        mechanism = charged_mechanism(plan, KeyStream(3), arithmetic)
        assert mechanism.sampler("gradient")(3) == drawn


def test_a_release_cannot_be_written_to(mechanism, exact):
    found = mechanism.release("gram", exact)
    with pytest.raises(ValueError, match="read-only"):
        found.value[0] = 0.0


def test_a_block_of_a_stack_is_unscaled_with_its_noise(mechanism, exact):
    block = mechanism.release("gram", exact.scaled(4.0), symmetric=True)
    found = block.unscaled(4.0, "part")
    assert (found.name, found.symmetric) == ("part", True)
    assert np.array_equal(found.value, block.value / 4.0)
    assert found.noise_stddev == block.noise_stddev / 4.0
    with pytest.raises(ValueError, match="read-only"):
        found.value[0] = 0.0


def test_mechanism_counts_that_nothing_was_drawn(mechanism, exact):
    mechanism.count_as_drawn("gram", 0)
    mechanism.release("gram", exact)
