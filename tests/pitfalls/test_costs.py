"""What a fit is charged: rows 4, 5, 17 to 19 and 30."""

import math
from collections import Counter
from functools import partial

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from scipy import stats
from sklearn.model_selection import GridSearchCV

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, HashKFold, search_cost
from privfeat.core.accounting import calibration, conversions, pld
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import PlannedRelease, Query
from tests.pitfalls.killed import KilledError, noise_before_a_kill

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


# 4 -- a budget was spent twice, or 1.25 times


def check_04(make, data, plant):
    """Every draw of noise is counted where it is made, and priced by its stddev."""
    drawn, genuine = [], plant.genuine("Gaussian noise")

    def counted(key, shape, stddev):
        drawn.append(stddev)
        return genuine(key, shape, stddev)

    with plant.context() as patch:
        patch("Gaussian noise", counted)
        for cls in (DPLeastSquares, DPFC, DPAdamLinear):
            drawn.clear()
            statement = make(cls, adjacency="replace_one").fit(*data).privacy_
            spent = spent_on(statement, drawn)
            assert spent == pytest.approx(statement.rho, rel=1e-9)
            delta = conversions.gaussian_delta(statement.mu, statement.epsilon)
            assert delta <= statement.delta * (1.0 + 1e-7)


def spent_on(statement, drawn):
    """Return the rho of all draws, of which those of a stack are one release.

    A stack draws a symmetric matrix, with the stddev of its entries off the diagonal,
    beside its other blocks.
    """
    counts, spent = Counter(drawn), []
    for record in statement.releases:
        stddev = record.noise_stddev
        times = max(counts.pop(stddev * scale, 0) for scale in (1.0, math.sqrt(0.5)))
        spent.append(times * record.noise_multiplier**-2 / 2)
    assert not counts
    return math.fsum(spent)


def test_04_all_draws_together_cost_what_is_stated(make, three_classes, plant):
    check_04(make, three_classes, plant)


def test_04_notices_a_second_draw(make, three_classes, plant):
    genuine = plant.genuine("release of a sum")

    def twice(self, name, exact, *, symmetric=False):
        self._blocks_left[name] += 1
        genuine(self, name, exact, symmetric=symmetric)
        return genuine(self, name, exact, symmetric=symmetric)

    plant("release of a sum", twice)
    with pytest.raises(AssertionError):
        check_04(make, three_classes, plant)


# 5 -- the fits of a search were not charged, because each clone had its own accountant


def check_05(make):
    candidates, n_splits = {"alpha": [0.1, 0.5, 1.0]}, 4
    fit = make(rho=0.01, epsilon=None, adjacency="replace_one", random_state=None)
    total = search_cost(GridSearchCV(fit, candidates, cv=HashKFold(n_splits)))
    # each candidate is fitted in all folds, and the best is fitted again
    n_charged = 3 * n_splits + 1
    assert total.mu**2 / 2 == pytest.approx(0.01 * n_charged)
    assert total.n_fits == 3 * n_splits + 1
    assert not total.private


def test_05_every_fit_of_a_search_is_charged(make):
    check_05(make)


def test_05_notices_a_search_that_costs_one_fit(make, plant):
    plant("folds of a search", lambda cv: 0)
    with pytest.raises(AssertionError):
        check_05(make)


# 17 -- integer or single-precision noise multipliers under sampling under-reported


def check_17():
    query = Query("gradient", 1.0, count=10, sampling_prob=0.1)
    for value in (1, np.float32(1), np.float64(1), np.int64(1)):
        event = PlannedRelease(query, value).event()
        assert type(event.event.event.noise_multiplier) is float
    expected = pld.pld_epsilon(PlannedRelease(query, 1.0).event(), 1e-5)
    for value in (1, np.float32(1)):
        event = PlannedRelease(query, value).event()
        assert pld.pld_epsilon(event, 1e-5) == expected
        planned = plan_releases([query], noise_multiplier=value, accounting="pld")
        assert planned.epsilon == expected


@pytest.mark.slow
def test_17_the_type_of_a_noise_multiplier_changes_nothing():
    check_17()


def test_17_notices_a_multiplier_that_is_passed_on_as_it_is(plant):
    def raw(noise_multiplier):
        event = GaussianDpEvent(1.0)
        object.__setattr__(event, "noise_multiplier", np.float32(1))
        return event

    plant("event of a Gaussian release", raw)
    with pytest.raises(AssertionError):
        check_17()


# 18 -- the classical formula above epsilon 1; a central limit theorem under sampling


def check_18():
    for epsilon in (0.1, 1.0, 8.0, 60.0):
        planned = plan_releases([Query("gram", 1.0)], epsilon=epsilon, delta=1e-5)
        mu = 1.0 / planned["gram"].noise_multiplier
        upper, lower = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        delta = stats.norm.sf(upper) - math.exp(epsilon + stats.norm.logsf(lower))
        assert delta <= 1e-5 * (1.0 + 1e-6)
    query = Query("gradient", 1.0, count=50, sampling_prob=0.05)
    planned = plan_releases([query], noise_multiplier=0.7, accounting="pld")
    event = PoissonSampledDpEvent(0.05, GaussianDpEvent(0.7))
    finer = PLDAccountant(value_discretization_interval=1e-3).compose(event, 50)
    assert planned.epsilon >= finer.get_epsilon(1e-5) - 0.01


@pytest.mark.slow
def test_18_noise_is_enough_by_the_exact_curve_and_by_pld():
    check_18()


def test_18_notices_the_classical_formula(plant):
    def classical(epsilon, delta):
        return epsilon / math.sqrt(2.0 * math.log(1.25 / delta))

    plant("mu of a budget", classical)
    with pytest.raises(AssertionError):
        check_18()


def test_18_notices_a_central_limit_theorem(plant):
    def limit(event, delta):
        mu = 0.05 * math.sqrt(50 * math.expm1(0.7**-2))
        return conversions.gaussian_epsilon(mu, delta)

    plant("epsilon by PLD", limit)
    with pytest.raises(AssertionError):
        check_18()


# 19 -- a negative divergence became zero, and NaN passed the checks


def check_19(monkeypatch):
    for bad in (math.nan, 0.0, -1.0, True, math.inf):
        for build in (
            lambda bad: Query("gram", bad),
            lambda bad: Query("gram", 1.0, weight=bad),
            lambda bad: plan_releases([Query("gram", 1.0)], rho=bad),
            lambda bad: plan_releases([Query("gram", 1.0)], noise_multiplier=bad),
            lambda bad: conversions.gaussian_epsilon(bad, 1e-5),
        ):
            with pytest.raises((TypeError, ValueError)):
                build(bad)
    for answer in (math.nan, -1e-9, -1.0):
        with monkeypatch.context() as patch:
            patch.setattr(PLDAccountant, "get_epsilon", lambda self, d, a=answer: a)
            assert pld.pld_epsilon(GaussianDpEvent(1.0), 1e-5) == math.inf


def test_19_nan_and_negative_numbers_fail_closed(monkeypatch):
    check_19(monkeypatch)


def test_19_notices_a_check_that_nan_passes(plant, monkeypatch):
    def check_positive(name, value):
        if value <= 0:
            raise ValueError(name)

    plant("check of a positive number", check_positive)
    with pytest.raises(pytest.fail.Exception):
        check_19(monkeypatch)


def test_19_notices_a_clamp_at_zero(plant, monkeypatch):
    genuine = plant.genuine("epsilon by PLD")
    plant("epsilon by PLD", lambda event, delta: max(0.0, -genuine(event, delta)))
    with pytest.raises(AssertionError):
        check_19(monkeypatch)


# 30 -- what was spent was written down after training, so a crash under-reported


def check_30(make, data, plant):
    """However many draws were made before a crash, their cost is stated."""
    for n_before in range(5):
        clf = make(DPAdamLinear, n_iter=4)
        drawn = noise_before_a_kill(plant, n_before, partial(clf.fit, *data))
        assert hasattr(clf, "privacy_")
        assert not hasattr(clf, "coef_")
        bounds = {r.noise_stddev: r.l2_sensitivity for r in clf.privacy_.releases}
        spent = math.fsum((bounds[stddev] / stddev) ** 2 / 2 for stddev in drawn)
        assert spent <= clf.privacy_.rho


def test_30_a_crash_at_any_draw_leaves_the_whole_cost_stated(
    make, three_classes, plant
):
    check_30(make, three_classes, plant)


def test_30_notices_a_statement_made_at_the_end(make, three_classes, plant):
    genuine = plant.genuine("fit of a linear model")

    def late(self, X, y, groups=None):
        try:
            return genuine(self, X, y, groups)
        except KilledError:
            self.__dict__.pop("privacy_")
            raise

    plant("fit of a linear model", late)
    with pytest.raises(AssertionError):
        check_30(make, three_classes, plant)


def test_30_notices_a_budget_smaller_than_what_is_drawn(make, three_classes, plant):
    genuine = calibration.plan_releases

    def cheap(queries, **budget):
        planned = genuine(queries, **budget)
        object.__setattr__(planned, "rho", planned.rho / 2.0)
        return planned

    plant("plan of a fit", cheap)
    with pytest.raises(AssertionError):
        check_30(make, three_classes, plant)
