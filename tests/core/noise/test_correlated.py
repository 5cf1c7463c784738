"""Correlated noise has the covariance of its strategy, and records take turns."""

import math

import numpy as np
import pytest
from scipy import stats

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds.strategy import Banded
from privfeat.core.noise.keys import KeyStream
from privfeat.core.noise.observation import leave_out
from privfeat.core.sums.processes import Team
from privfeat.core.sums.totals import ExactSum
from privfeat.exceptions import PrivacyError
from tests.core.bounds.test_strategy import matrix
from tests.core.mechanisms import charged_mechanism

STRATEGY = Banded((0.8, 0.5, 0.3))
N_STEPS, N_NUMBERS = 8, 20_000
RATE = 1e-10


def planned(prob=1.0, n_steps=N_STEPS, strategy=STRATEGY):
    query = Query("gradient", 2.0, n_steps, sampling_prob=prob, strategy=strategy)
    accounting = "rdp" if prob < 1.0 else "exact"
    return plan_releases([query], noise_multiplier=1.5, accounting=accounting)


def mechanism_of(plan, key=3, **options):
    return charged_mechanism(plan, KeyStream(key), **options)


def noises(mechanism, starts=()):
    exact, found = ExactSum(np.zeros(N_NUMBERS)), []
    for step in range(N_STEPS):
        if step in starts:
            mechanism.restart("gradient")
        found.append(mechanism.release("gradient", exact))
    return found


def is_white(draws, stddev):
    """Whether rows look independent and standard normal; each test fails at `RATE`."""
    squares = np.sum((draws / stddev) ** 2, axis=1)
    tails = stats.chi2.ppf([RATE / 2, 1 - RATE / 2], df=N_NUMBERS)
    correlations = np.corrcoef(draws)[np.triu_indices(len(draws), 1)]
    most = stats.norm.isf(RATE / 2) / math.sqrt(N_NUMBERS - 3)
    return bool(
        np.all((tails[0] < squares) & (squares < tails[1]))
        and np.max(np.abs(np.arctanh(correlations))) < most
    )


@pytest.mark.statistical
@pytest.mark.parametrize("starts", [(), (3,), (3, 6)])
def test_correlated_noise_has_the_covariance_of_its_strategy(starts):
    """``C w`` is white, stretch by stretch.

    Eight chi-square tests and 28 correlations at 1e-10: false-positive rate below 4e-9
    over keys, of which this is one; a stddev that is wrong by 4 % is found.
    """
    plan = planned()
    released = noises(mechanism_of(plan), starts)
    w = np.array([release.value for release in released])
    c = matrix(STRATEGY, N_STEPS, (0, *starts))
    assert is_white(c @ w, plan.releases[0].noise_stddev)
    # the same noise, taken for independent or for that of another strategy
    assert not is_white(w, plan.releases[0].noise_stddev)
    other = matrix(Banded((0.8, 0.4, 0.3)), N_STEPS, (0, *starts))
    assert not is_white(other @ w, plan.releases[0].noise_stddev)


def test_correlated_release_says_the_stddev_of_its_noise():
    plan = planned()
    inverse = np.linalg.inv(matrix(STRATEGY, N_STEPS, (0, 3)))
    stddevs = plan.releases[0].noise_stddev * np.linalg.norm(inverse, axis=1)
    released = noises(mechanism_of(plan), (3,))
    np.testing.assert_allclose([r.noise_stddev for r in released], stddevs, rtol=1e-12)


def test_prefix_sums_have_less_noise():
    """What it is for; of one stddev, at more than one band more than half is gone."""
    independent = plan_releases([Query("gradient", 2.0, N_STEPS)], noise_multiplier=1.5)
    lasts = [
        np.std(sum(release.value for release in noises(mechanism_of(plan))))
        for plan in (independent, planned())
    ]
    assert lasts[1] < 0.75 * lasts[0]


def test_correlated_noise_does_not_depend_on_the_sums():
    plan, draw = planned(), np.random.default_rng(5)
    one, two = mechanism_of(plan), mechanism_of(plan)
    for _ in range(N_STEPS):
        total = draw.integers(-9, 9, 5).astype(float)
        zero = one.release("gradient", ExactSum(np.zeros(5))).value
        noisy = two.release("gradient", ExactSum(total)).value
        np.testing.assert_allclose(noisy - total, zero, atol=1e-12)


@pytest.mark.parametrize("n_drawn", [1, 2, 4])
def test_a_stretch_begins_after_whole_cycles(n_drawn):
    mechanism = mechanism_of(planned())
    with pytest.raises(PrivacyError, match="must begin anew after a multiple of 3"):
        mechanism.count_as_drawn("gradient", n_drawn)
    mechanism = mechanism_of(planned())
    for _ in range(n_drawn):
        mechanism.release("gradient", ExactSum(np.zeros(2)))
    with pytest.raises(PrivacyError, match="must begin anew after a multiple of 3"):
        mechanism.restart("gradient")


def test_whole_cycles_are_rounded_up():
    plan = plan_releases([Query("gram", 1.0)])
    assert [mechanism_of(planned()).whole_cycles("gradient", n) for n in (1, 3, 4)] == [
        *(3, 3, 6)
    ]
    assert [mechanism_of(plan).whole_cycles("gram", n) for n in (3, 4)] == [3, 4]
    mechanism_of(plan).restart("gram")  # nothing to forget


@pytest.mark.parametrize("prob", [1.0, 0.5])
def test_records_take_turns(prob):
    """At most one in a cycle, at the same place in all cycles of a stretch."""
    mechanism, n = mechanism_of(planned(prob), key=4), 4000
    sample, masks = mechanism.sampler("gradient"), []
    for step in range(N_STEPS):
        if step == 3:
            mechanism.restart("gradient")
        masks.append(sample(n))
        mechanism.release("gradient", ExactSum(np.zeros(2)))
    for start, end in [(0, 3), (3, 8)]:
        stretch = np.array(masks[start:end])
        seen = [
            stretch[place :: STRATEGY.bands].any(axis=0)
            for place in range(STRATEGY.bands)
        ]
        assert np.max(np.sum(seen, axis=0)) == 1
    # groups of the second stretch are others
    first, second = np.array(masks[:3]), np.array(masks[3:6])
    both = first.any(axis=0) & second.any(axis=0)
    same = np.mean(np.argmax(first, axis=0)[both] == np.argmax(second, axis=0)[both])
    assert 0.2 < same < 0.5  # 1/3, of 1,000 records or more: rate below 1e-12
    # and all groups are about as large: 4,000 prob / 3, within 8 standard deviations
    sizes = np.array([mask.sum() for mask in masks])
    share = prob / 3
    assert np.all(np.abs(sizes - n * share) < 8 * math.sqrt(n * share * (1 - share)))


def test_another_release_gives_the_turn_to_another_group():
    """It is the number of releases that counts."""
    mechanism = mechanism_of(planned())
    sample = mechanism.sampler("gradient")
    sample(50)
    mechanism.release("gradient", ExactSum(np.zeros(2)))
    assert not np.any(sample(50) & mechanism_of(planned()).sampler("gradient")(50))


def test_a_release_may_be_the_first_that_samples():
    mechanism = mechanism_of(planned())
    mechanism.release("gradient", ExactSum(np.zeros(2)))
    assert mechanism.sampler("gradient")(50).any()  # of number 1


def test_a_record_that_is_left_out_changes_no_turn_of_others():
    left = np.arange(50) == 7
    whole = mechanism_of(planned()).sampler("gradient")(50)
    with leave_out(left):
        without = mechanism_of(planned()).sampler("gradient")(50)
    assert np.array_equal(without, whole & ~left)


def test_another_number_of_records_is_refused():
    mechanism = mechanism_of(planned())
    sample = mechanism.sampler("gradient")
    sample(50)
    with pytest.raises(PrivacyError, match="must sample all records at once"):
        sample(50)  # records of two parts would be in one group
    mechanism.release("gradient", ExactSum(np.zeros(2)))
    with pytest.raises(PrivacyError, match="must sample the same records"):
        sample(49)


def test_another_shape_is_refused():
    mechanism = mechanism_of(planned())
    mechanism.release("gradient", ExactSum(np.zeros(2)))
    with pytest.raises(PrivacyError, match="must have one shape"):
        mechanism.release("gradient", ExactSum(np.zeros(1)))


def test_correlated_noise_in_exact_arithmetic_is_refused():
    with pytest.raises(PrivacyError, match="must be of arithmetic='float64'"):
        mechanism_of(planned(), arithmetic="exact")


def test_correlated_noise_in_several_processes_is_refused(plant):
    plant("team that draws noise", lambda: Team(0, 2))
    with pytest.raises(PrivacyError, match="in one process"):
        mechanism_of(planned())
