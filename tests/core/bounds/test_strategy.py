"""What a banded strategy lets one record do, by brute force."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import PlannedRelease, Query
from privfeat.core.bounds.strategy import MOST_BANDS, Banded
from privfeat.exceptions import UnsupportedEventError

BELOW = 1.0 - 2.0**-50
STRATEGIES = [
    Banded((0.8 * BELOW, 0.6)),
    Banded((0.7, 0.5, 0.4)),
    Banded((0.9, 0.1, 1e-6)),
]


def matrix(strategy, n_steps, starts=(0,)):
    """Return C, block by block for each stretch."""
    found = np.zeros((n_steps, n_steps))
    for start, end in itertools.pairwise((*starts, n_steps)):
        for lag, coefficient in enumerate(strategy.coefficients):
            for row in range(start + lag, end):
                found[row, row - lag] = coefficient
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("n_steps", range(1, 9))
def test_no_participation_moves_more_than_its_turns(strategy, n_steps):
    """Every set of turns, at every point where a fit may begin anew.

    A record has one group in each stretch, adds +-1 (the ends of its range) where its
    coin says so, and turns with it where it does: ``norm(C x)**2`` is at most the
    number of turns that the cost counts.
    """
    bands, most = strategy.bands, strategy.participations(n_steps)
    cycles = range(bands, n_steps, bands)
    found = []
    for restarts in itertools.chain.from_iterable(
        itertools.combinations(cycles, size) for size in range(len(cycles) + 1)
    ):
        starts = (0, *restarts)
        of_stretches = matrix(strategy, n_steps, starts)
        ends = (*restarts, n_steps)
        for groups in itertools.product(range(bands), repeat=len(starts)):
            turns = [
                step
                for group, start, end in zip(groups, starts, ends, strict=True)
                for step in range(start, end)
                if step % bands == group
            ]
            assert len(turns) <= most
            for signs in itertools.product((-1.0, 0.0, 1.0), repeat=len(turns)):
                moved = np.zeros(n_steps)
                moved[turns] = signs
                found.append(float(np.sum((of_stretches @ moved) ** 2)))
                assert found[-1] <= np.abs(moved).sum() + 1e-12
    assert max(found) <= most
    if n_steps >= bands and math.isclose(np.sum(np.square(strategy.coefficients)), 1.0):
        assert max(found) > most - 1  # the bound is reached by whole blocks


def test_turns_that_are_too_near_would_move_more():
    """The planted fault: a group that changes within a stretch, or a step too early."""
    strategy = STRATEGIES[0]
    moved = np.array([0.0, 1.0, 1.0, 0.0])  # turns of two groups
    assert np.sum((matrix(strategy, 4) @ moved) ** 2) > strategy.participations(4)
    # where noise begins anew between them nothing is lost
    assert np.sum((matrix(strategy, 4, (0, 2)) @ moved) ** 2) <= 2.0


@pytest.mark.parametrize("strategy", STRATEGIES[:2])
@pytest.mark.parametrize("n_steps", [1, 4, 7])
def test_adaptive_blocks_lose_what_sampled_gaussians_lose(strategy, n_steps):
    """The privacy loss of an adaptive adversary, computed from densities.

    Other records answer what was released, by turns; the record adds 1 where its coins
    say so. Given the coins, the logarithm of the ratio of densities of the releases is
    that of independent Gaussian releases of the parts ``c g`` of its blocks.
    """
    draw = np.random.default_rng(5)
    c, bands = np.array(strategy.coefficients), strategy.bands
    of_noise = matrix(strategy, n_steps)
    inverse = np.linalg.inv(of_noise)
    covariance = inverse @ inverse.T
    for group in range(min(bands, n_steps)):
        coins = draw.integers(0, 2, n_steps) * (np.arange(n_steps) % bands == group)
        z, released = draw.normal(size=n_steps), np.zeros(n_steps)
        others, added = np.zeros(n_steps), np.zeros(n_steps)
        noise = inverse @ z
        for step in range(n_steps):
            known = released[:step]
            others[step] = np.sin(known.sum() + step)
            added[step] = coins[step] * np.cos(known.sum())
            released[step] = others[step] + added[step] + noise[step]

        with_it, without = released - others - added, released - others
        precision = np.linalg.inv(covariance)
        loss = 0.5 * (without @ precision @ without - with_it @ precision @ with_it)
        u, blocks = of_noise @ (released - others), []
        for turn in range(group, n_steps, bands):
            shift = (c * added[turn])[: n_steps - turn]
            rows = u[turn : turn + bands]
            blocks.append(rows @ shift - 0.5 * shift @ shift)
            assert np.linalg.norm(shift) <= 1.0
        assert loss == pytest.approx(sum(blocks), abs=1e-9)


def test_a_query_costs_what_its_turns_cost():
    query = Query("gradient", 1.0, count=7, sampling_prob=0.2, strategy=STRATEGIES[0])
    sampled = PoissonSampledDpEvent(0.2, GaussianDpEvent(3.0))
    assert query.participations == 4
    assert PlannedRelease(query, 3.0).event() == SelfComposedDpEvent(sampled, 4)
    assert PlannedRelease(query, 3.0).record().planned() == PlannedRelease(query, 3.0)


@pytest.mark.slow
@pytest.mark.parametrize("accounting", ["pld", "rdp"])
def test_sampled_turns_need_the_noise_of_as_many_steps(accounting):
    banded = Query("gradient", 1.0, 40, sampling_prob=0.2, strategy=STRATEGIES[0])
    fewer = Query("gradient", 1.0, 20, sampling_prob=0.2)
    budget = {"epsilon": 2.0, "accounting": accounting}
    noise = [plan_releases([q], **budget)["gradient"] for q in (banded, fewer)]
    assert noise[0].noise_multiplier == noise[1].noise_multiplier


@pytest.mark.parametrize("accounting", ["exact", "zcdp"])
def test_certain_turns_need_the_noise_of_as_many_steps(accounting):
    banded = Query("gradient", 1.0, count=40, strategy=STRATEGIES[1])
    fewer = Query("gradient", 1.0, count=14)
    for budget in ({"epsilon": 2.0}, {"rho": 0.1}, {"noise_multiplier": 3.0}):
        plans = [
            plan_releases([q], accounting=accounting, **budget) for q in (banded, fewer)
        ]
        one, two = (
            (plan.releases[0].noise_multiplier, plan.epsilon, plan.rho, plan.mu)
            for plan in plans
        )
        assert one == two


def test_one_band_is_no_strategy():
    """Which is independent noise: there is one way to say it."""
    with pytest.raises(ValueError, match="coefficients must be 2 to 256, got 1"):
        Banded((1.0,))


@pytest.mark.parametrize(
    ("coefficients", "error"),
    [
        ((0.8, 0.6000001), ValueError),  # squares above 1
        ((0.8, 0.6), ValueError),  # by what rounding to float64 added
        ((0.6, 0.8), ValueError),
        ((0.5, 0.5), ValueError),
        ((0.5, 0.0), ValueError),
        ((0.5, -0.1), ValueError),
        ((math.nan, 0.1), ValueError),
        ((0.5, math.nan), ValueError),
        ((math.inf, 0.1), ValueError),
        (("0.5", 0.1), TypeError),
        ((True, 0.1), TypeError),
        (None, TypeError),
        (tuple(np.linspace(0.05, 0.01, MOST_BANDS + 1)), ValueError),
    ],
)
def test_other_coefficients_are_refused(coefficients, error):
    with pytest.raises(error):
        Banded(coefficients)


def test_blocks_have_no_strategy():
    with pytest.raises(ValueError, match="n_blocks must be in"):
        Query("gradient", 1.0, n_blocks=2, strategy=STRATEGIES[0])


def test_users_whose_records_take_turns_apart_are_refused():
    query = Query("gradient", 1.0, count=4, strategy=STRATEGIES[0])
    with pytest.raises(UnsupportedEventError, match="not sampled together"):
        query.per_user(3)
    assert replace(query, strategy=None).per_user(3).l2_sensitivity >= 3.0
