import math
from functools import partial

import dp_accounting.pld
import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.pld import PLDAccountant
from scipy.special import gammaln, log_ndtr, ndtr
from scipy.stats import binom

from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.conversions import gaussian_epsilon
from privfeat.core.accounting.loss_grid import FINE, loss_grid, parts
from privfeat.core.accounting.plan import Query
from privfeat.core.accounting.pld import pld_epsilon
from privfeat.exceptions import UnsupportedEventError

IMAGENET = 0.0128 / 2.5  # sampling probability over noise multiplier
STEPS, DELTA = 72_000, 8e-7


def steps(prob, noise, count):
    event = PoissonSampledDpEvent(prob, GaussianDpEvent(noise))
    return SelfComposedDpEvent(event, count)


def least_epsilon(prob, noise, count, delta):
    """Return a lower bound on epsilon: what one attack proves.

    It says that the record was there if at least ``j`` steps are above ``1 - t noise``.
    That happens with it at a rate of ``P(Bin(count, prob Phi(t)) >= j)``, without it at
    most at ``C(count, j) (1 - Phi(1 / noise - t))^j``.
    """
    bounds = [0.0]
    for j in range(1, 60):
        for t in (-1.0, 0.0, 1.0, 2.0, 3.0):
            found = binom.sf(j - 1, count, prob * ndtr(t)) - delta
            chosen = gammaln(count + 1) - gammaln(j + 1) - gammaln(count - j + 1)
            if found > 0.0:
                false = chosen + j * log_ndtr(t - 1.0 / noise)
                bounds.append(math.log(found) - false)
    return max(bounds)


@pytest.mark.parametrize("noise", [0.0195, 0.039, 0.078])
def test_epsilons_of_the_simulations_of_tan_are_between_two_bounds(noise):
    """Sander et al. 2023, Table 2: batches of 128, 256, 512 instead of 16,384."""
    prob = IMAGENET * noise
    epsilon = pld_epsilon(steps(prob, noise, STEPS), DELTA)
    least = least_epsilon(prob, noise, STEPS, DELTA)
    assert 1_000.0 < least < epsilon < 1.35 * least


@pytest.mark.parametrize(
    ("prob", "noise", "count"),
    [(0.01, 0.6, 1000), (0.2, 1.5, 200), (0.0128, 2.5, 72_000), (1.0, 0.5, 1)],
)
def test_epsilons_that_protect_keep_the_fine_grid(prob, noise, count):
    assert loss_grid(steps(prob, noise, count)) == FINE


def test_grids_grow_coarser_as_noise_falls_until_there_is_none():
    noises = (1.0, 0.5, 0.3, 0.1, 0.0195, 0.005, 1e-3, 1e-200)
    grids = [loss_grid(steps(IMAGENET * 1e-2, noise, STEPS)) for noise in noises]
    assert grids[-2:] == [None, None]
    assert grids[:-2] == sorted(grids[:-2])
    assert grids[0] == FINE < grids[-3] <= 1.0


@pytest.mark.parametrize("grid", [1e-3, 1e-2, 0.1, 1.0])
def test_no_grid_makes_epsilon_too_small(monkeypatch, grid):
    """With next to no sampling the exact curve is known."""
    event = steps(1 - 1e-9, 6.0, 1000)
    exact = gaussian_epsilon(math.sqrt(1000) / 6.0, 1e-6)
    gridded = partial(PLDAccountant, value_discretization_interval=grid)
    monkeypatch.setattr(
        dp_accounting.pld, "PLDAccountant", lambda relation, **_: gridded(relation)
    )
    assert exact < pld_epsilon(event, 1e-6)


@pytest.mark.slow
def test_large_epsilons_are_little_above_the_exact_curve():
    for mu in (38.0, 100.0):  # in and beyond where exp(-epsilon) is 0
        exact = gaussian_epsilon(mu, 1e-6)
        assert exact < pld_epsilon(GaussianDpEvent(1.0 / mu), 1e-6) < 1.01 * exact


def test_epsilons_beyond_use_are_infinite_at_once():
    assert pld_epsilon(steps(0.01, 1e-3, STEPS), 1e-5) == math.inf
    assert pld_epsilon(GaussianDpEvent(1e-200), 1e-5) == math.inf
    query = Query("gradient", 1.0, count=STEPS, sampling_prob=0.01)
    with pytest.raises(UnsupportedEventError, match="larger delta or noise_mult"):
        plan_releases([query], noise_multiplier=1e-3, accounting="pld")


@pytest.mark.parametrize("epsilon", [1.001e4, 1e308])
@pytest.mark.parametrize("prob", [0.5, 1.0])
def test_budgets_beyond_use_are_refused_at_once(epsilon, prob):
    query = Query("gradient", 1.0, count=10, sampling_prob=prob)
    with pytest.raises(ValueError, match=r"epsilon must be in .*epsilon=inf for no"):
        plan_releases([query], epsilon=epsilon, accounting="pld")


def test_parts_are_counted_through_all_compositions():
    one, two = GaussianDpEvent(2.0), LaplaceDpEvent(1.0)
    event = SelfComposedDpEvent(ComposedDpEvent([one, SelfComposedDpEvent(two, 3)]), 5)
    assert list(parts(event)) == [(one, 5), (two, 15)]


@pytest.mark.parametrize(
    "event",
    [NonPrivateDpEvent(), GaussianDpEvent(0.0), steps(0.1, 0.0, 5), LaplaceDpEvent(1)],
)
def test_what_has_no_gaussian_noise_has_the_fine_grid(event):
    assert loss_grid(event) == FINE
