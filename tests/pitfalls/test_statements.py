"""What a fit is charged and says: rows 1, 4, 5, 17 to 19, 25 to 27, 30."""

import math
from collections import Counter

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from scipy import stats
from sklearn.model_selection import GridSearchCV

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPSGDClassifier,
    HashKFold,
    PrivacyError,
    TemperatureScaling,
    search_cost,
)
from privfeat.core.accounting import calibration, conversions, plan, pld
from privfeat.core.accounting.calibration import plan_releases
from privfeat.core.accounting.plan import PlannedRelease, Query
from privfeat.core.noise import draws
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.estimation import labels
from privfeat.estimation.labels import encode_labels
from privfeat.linear import model as _base
from privfeat.linear import rows as rows_of
from privfeat.selection import cost
from tests.linear.replaying import assert_same_state, check_sensitivity, replay

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")

# 1 -- the set of labels was read from private data


def check_01(spy, make, data):
    """The neighbour loses the only record of a class."""
    X, y = data
    rare = np.where(y == 2, 0, y)
    rare[4] = 2
    without = np.delete(X, 4, axis=0), np.delete(rare, 4)
    for cls in (DPLeastSquares, DPFC):
        one, two, *_ = replay(spy, lambda cls=cls: make(cls), (X, rare), without)
        assert_same_state(one, two)
        assert one.coef_.shape == (3, 4)


def test_01_a_class_that_loses_its_only_record_stays(spy, make, three_classes):
    check_01(spy, make, three_classes)


def test_01_notices_classes_read_from_the_labels(spy, make, three_classes, monkeypatch):
    monkeypatch.setattr(
        labels, "encode_labels", lambda y, classes: encode_labels(y, None)
    )
    with pytest.raises((AssertionError, ValueError)):
        check_01(spy, make, three_classes)


# 4 -- a budget was spent twice, or 1.25 times


def check_04(make, data, monkeypatch):
    """Every draw of noise is counted where it is made, and priced by its stddev."""
    drawn, genuine = [], draws.gaussian

    def counted(key, shape, stddev):
        drawn.append(stddev)
        return genuine(key, shape, stddev)

    with monkeypatch.context() as patch:
        patch.setattr(draws, "gaussian", counted)
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


def test_04_all_draws_together_cost_what_is_stated(make, three_classes, monkeypatch):
    check_04(make, three_classes, monkeypatch)


def test_04_notices_a_second_draw(make, three_classes, monkeypatch):
    genuine = GaussianMechanism.release

    def twice(self, name, exact, *, symmetric=False):
        self._blocks_left[name] += 1
        genuine(self, name, exact, symmetric=symmetric)
        return genuine(self, name, exact, symmetric=symmetric)

    monkeypatch.setattr(GaussianMechanism, "release", twice)
    with pytest.raises(AssertionError):
        check_04(make, three_classes, monkeypatch)


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


def test_05_notices_a_search_that_costs_one_fit(make, monkeypatch):
    monkeypatch.setattr(cost, "_n_splits", lambda cv: 0)
    with pytest.raises(AssertionError):
        check_05(make)


# 17 -- integer or single-precision noise multipliers under sampling under-reported


def check_17():
    query = Query("gradient", 1.0, count=10, sampling_prob=0.1)
    expected = pld.pld_epsilon(PlannedRelease(query, 1.0).event(), 1e-5)
    for value in (1, np.float32(1), np.float64(1), np.int64(1)):
        event = PlannedRelease(query, value).event()
        assert type(event.event.event.noise_multiplier) is float
    for value in (1, np.float32(1)):
        event = PlannedRelease(query, value).event()
        assert pld.pld_epsilon(event, 1e-5) == expected
        planned = plan_releases([query], noise_multiplier=value, accounting="pld")
        assert planned.epsilon == expected


def test_17_the_type_of_a_noise_multiplier_changes_nothing():
    check_17()


def test_17_notices_a_multiplier_that_is_passed_on_as_it_is(monkeypatch):
    def raw(noise_multiplier):
        event = GaussianDpEvent(1.0)
        object.__setattr__(event, "noise_multiplier", np.float32(1))
        return event

    monkeypatch.setattr(plan, "GaussianDpEvent", raw)
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


def test_18_noise_is_enough_by_the_exact_curve_and_by_pld():
    check_18()


def test_18_notices_the_classical_formula(monkeypatch):
    def classical(epsilon, delta):
        return epsilon / math.sqrt(2.0 * math.log(1.25 / delta))

    monkeypatch.setattr(conversions, "gaussian_mu", classical)
    with pytest.raises(AssertionError):
        check_18()


def test_18_notices_a_central_limit_theorem(monkeypatch):
    def limit(event, delta):
        mu = 0.05 * math.sqrt(50 * math.expm1(0.7**-2))
        return conversions.gaussian_epsilon(mu, delta)

    monkeypatch.setattr(pld, "pld_epsilon", limit)
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


def test_19_notices_a_check_that_nan_passes(monkeypatch):
    def check_positive(name, value):
        if value <= 0:
            raise ValueError(name)

    monkeypatch.setattr(plan, "check_positive", check_positive)
    with pytest.raises(pytest.fail.Exception):
        check_19(monkeypatch)


def test_19_notices_a_clamp_at_zero(monkeypatch):
    genuine = pld.pld_epsilon
    monkeypatch.setattr(
        pld, "pld_epsilon", lambda event, delta: max(0.0, -genuine(event, delta))
    )
    with pytest.raises(AssertionError):
        check_19(monkeypatch)


# 25 -- exact diagnostics were returned: losses, norms, counts, convergence


def check_25(spy, make, one_less):
    for cls in (DPLeastSquares, DPFC, DPAdamLinear):
        one, two, *_ = replay(spy, lambda cls=cls: make(cls), *one_less)
        assert_same_state(one, two)


def test_25_fitted_state_holds_nothing_but_releases(spy, make, one_less):
    check_25(spy, make, one_less)


@pytest.mark.parametrize("fit", ["classifier", "temperature", "network"])
@pytest.mark.parametrize("wrong", ["ragged", "no features", "ragged labels"])
def test_25_no_message_holds_the_number_of_records(wrong, fit):
    said = set()
    for n in (7, 8):
        X, y = [[1.0, 2.0]] * n, [index % 2 for index in range(n)]
        if wrong == "ragged":
            X[-1] = [3.0]
        elif wrong == "no features":
            X = np.zeros((n, 0))
        else:
            y[-1] = [1, 0]
        model = DPLeastSquares(classes=[0, 1], random_state=0)
        if fit == "network":
            model = DPSGDClassifier(model="mlp", classes=[0, 1], noise_multiplier=1.0)
        elif fit == "temperature":
            model = TemperatureScaling(model.fit([[1.0, 2.0]] * 2, [0, 1]))
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            model.fit(X, y)
        said.add(str(caught.value))
    assert len(said) == 1


def test_25_notices_a_count_on_the_estimator(spy, make, one_less, monkeypatch):
    genuine = DPLeastSquares._solve

    def counting(self, rows, mechanism, shape):
        self.n_samples_seen_ = rows._features.shape[0]
        return genuine(self, rows, mechanism, shape)

    monkeypatch.setattr(DPLeastSquares, "_solve", counting)
    with pytest.raises(AssertionError):
        check_25(spy, make, one_less)


# 26 -- preprocessing was fitted on private data: bounds, scaler, principal components


def check_26(spy, make, data):
    """The longest record goes; nothing that remains may be scaled another way."""
    X, y = data
    X = X.copy()
    X[4] *= 100.0
    without = np.delete(X, 4, axis=0), np.delete(y, 4)
    for options in ({}, {"row_scaling": "clip", "clip_norm": 1.0}):
        one, _, calls, other_calls = replay(
            spy, lambda options=options: make(**options), (X, y), without
        )
        check_sensitivity(one.privacy_, calls, other_calls)
        assert "feature_mean" in {record.name for record in one.privacy_.releases}


def test_26_rows_are_scaled_by_public_constants_or_charged(spy, make, three_classes):
    check_26(spy, make, three_classes)


def test_26_notices_a_scaler_fitted_on_the_records(
    spy, make, three_classes, monkeypatch
):
    genuine = rows_of.BoundedRows._read

    def scaled(self, start, stop):
        return genuine(self, start, stop) / np.std(self._features, axis=0)

    monkeypatch.setattr(rows_of.BoundedRows, "_read", scaled)
    with pytest.raises(AssertionError):
        check_26(spy, make, three_classes)


# 27 -- the guarantee held only if an optimizer converged


def check_27(spy, make, data):
    X, y = data
    for features in (X, np.zeros_like(X), 1e6 * X):  # hard, solved at once, separable
        spy.start()
        clf = make(DPAdamLinear, n_iter=5).fit(features, y)
        assert len(spy.of("gradient")) == clf.n_iter_ == 5


def test_27_the_number_of_noisy_steps_does_not_depend_on_the_data(
    spy, make, three_classes
):
    check_27(spy, make, three_classes)


def test_27_notices_an_early_stop(spy, make, three_classes, monkeypatch):
    """The plan is then not complete, and the fit gives no model."""

    def until_good_enough(self, n_steps):
        for step in range(n_steps):
            if step == 3:
                return
            yield step

    monkeypatch.setattr(DPAdamLinear, "_steps", until_good_enough)
    with pytest.raises((AssertionError, PrivacyError)):
        check_27(spy, make, three_classes)


# 30 -- what was spent was written down after training, so a crash under-reported


class KilledError(Exception):
    """Stands for a crash."""


def check_30(make, data, monkeypatch):
    """However many draws were made before a crash, their cost is stated."""
    for n_before in range(5):
        clf, genuine, drawn = make(DPAdamLinear, n_iter=4), draws.gaussian, []

        def dying(key, shape, stddev, drawn=drawn, genuine=genuine, n=n_before):
            if len(drawn) == n:
                raise KilledError
            drawn.append(stddev)
            return genuine(key, shape, stddev)

        with monkeypatch.context() as patch:
            patch.setattr(draws, "gaussian", dying)
            with pytest.raises(KilledError):
                clf.fit(*data)
        assert hasattr(clf, "privacy_")
        assert not hasattr(clf, "coef_")
        bounds = {r.noise_stddev: r.l2_sensitivity for r in clf.privacy_.releases}
        spent = math.fsum((bounds[stddev] / stddev) ** 2 / 2 for stddev in drawn)
        assert spent <= clf.privacy_.rho


def test_30_a_crash_at_any_draw_leaves_the_whole_cost_stated(
    make, three_classes, monkeypatch
):
    check_30(make, three_classes, monkeypatch)


def test_30_notices_a_statement_made_at_the_end(make, three_classes, monkeypatch):
    genuine = _base.DPLinearModel.fit

    def late(self, X, y, groups=None):
        try:
            return genuine(self, X, y, groups)
        except KilledError:
            self.__dict__.pop("privacy_")
            raise

    monkeypatch.setattr(_base.DPLinearModel, "fit", late)
    with pytest.raises(AssertionError):
        check_30(make, three_classes, monkeypatch)


def test_30_notices_a_budget_smaller_than_what_is_drawn(
    make, three_classes, monkeypatch
):
    genuine = calibration.plan_releases

    def cheap(queries, **budget):
        planned = genuine(queries, **budget)
        object.__setattr__(planned, "rho", planned.rho / 2.0)
        return planned

    monkeypatch.setattr(_base, "plan_releases", cheap)
    with pytest.raises(AssertionError):
        check_30(make, three_classes, monkeypatch)
