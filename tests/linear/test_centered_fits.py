"""Fits that centre their rows: what they release, and what it costs."""

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, PrivacyError
from privfeat.core.accounting.conversions import gaussian_epsilon
from privfeat.linear import classifier
from tests.combinations import few
from tests.linear.centers import Stub
from tests.linear.replaying import assert_same_state, check_sensitivity, replay

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.mark.parametrize("noise_multiplier", [1e-5, 1e5])
@pytest.mark.parametrize("clip_norm", [1e-6, 1e6])
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_center_is_finite_at_the_ends_of_all_ranges(
    row_scaling, clip_norm, noise_multiplier, three_classes
):
    X, y = three_classes
    X = np.vstack([X, np.zeros(4), np.full(4, 1e300), np.full(4, 1e-310)])
    clf = DPLeastSquares(
        row_scaling=row_scaling,
        clip_norm=clip_norm,
        noise_multiplier=noise_multiplier,
        delta=0.5,
    )
    clf.fit(X, [*y, 0, 1, 2])
    radius = 1.0 if row_scaling == "unit" else clip_norm
    assert np.linalg.norm(clf.center_) <= radius * (1 + 1e-12)
    assert np.all(np.isfinite(clf.coef_))


def test_fit_without_privacy_does_not_clip_the_mean(three_classes):
    X, y = three_classes
    clf = DPLeastSquares(epsilon=math.inf, row_scaling="clip", clip_norm=1e-3)
    np.testing.assert_allclose(clf.fit(X, y).center_, X.mean(axis=0), rtol=1e-5)


@pytest.mark.parametrize("center", [True, False])
def test_fit_sets_the_center(centred, center, three_classes, spy):
    cls, options = centred
    clf = cls(center=center, noise_multiplier=0.1, **options).fit(*three_classes)
    assert clf.center_.shape == (4,)
    assert clf.center_.dtype == np.float64
    assert np.any(clf.center_ != 0.0) == center
    assert [call.name for call in spy.calls].count("feature_mean") == center
    if center:
        assert spy.calls[0].name == "feature_mean"


@pytest.mark.parametrize(
    "rows",
    [
        {},
        {"fit_intercept": True, "intercept_scaling": 0.3, "clip_norm": 0.7},
        {"row_scaling": "clip", "clip_norm": 100.0},
        {"row_scaling": "clip", "clip_norm": 100.0, "fit_intercept": True},
    ],
    ids=["unit", "unit-intercept", "clip", "clip-intercept"],
)
def test_scores_of_training_rows_are_those_of_the_fit(
    centred, rows, three_classes, plant
):
    """The rows that `_solve` saw times the coefficients that it found."""
    cls, options = centred
    X, y = three_classes
    seen, genuine = [], plant.genuine("solution of a linear fit", of=cls)

    def solve(self, rows, mechanism, shape):
        coef = genuine(self, rows, mechanism, shape)
        (chunk,) = rows.chunks()
        seen.append(np.asarray(chunk.rows, float)[: len(X)] * rows.step @ coef.T)
        return coef

    plant("solution of a linear fit", solve, of=cls)
    clf = cls(noise_multiplier=1e-3, **(options | rows)).fit(X, y)
    assert np.any(clf.center_ != 0.0)
    scale = np.max(np.abs(seen[0])) * float(rows.get("clip_norm", 1.0))
    np.testing.assert_allclose(clf.decision_function(X), seen[0], atol=1e-5 * scale)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_fit_for_users_multiplies_the_sensitivity_of_the_mean(
    centred, adjacency, three_classes
):
    cls, options = centred
    X, y = three_classes
    clf = cls(
        adjacency=adjacency,
        clip_norm=0.5,
        max_group_size=6,
        user_bound="count",
        **options,
    )
    mean = clf.fit(X, y, np.arange(31) // 4).privacy_.releases[0]
    pair = 1.0 if adjacency == "add_remove" else 2.0 * math.sqrt(0.8)
    assert mean.name == "feature_mean"
    assert mean.l2_sensitivity == pytest.approx(6 * 0.5 * pair, rel=1e-6)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    "budget", [{"epsilon": 2.0}, {"rho": 0.3}, {"noise_multiplier": 5.0}]
)
def test_cost_of_all_draws_is_that_of_the_statement(
    centred, budget, adjacency, three_classes, spy
):
    """From the stddev of each draw and the bound of its query, blocks taken together.

    The mean gets a tenth.
    """
    cls, options = centred
    clf = cls(adjacency=adjacency, classes=range(3), **budget, **options)
    statement = clf.fit(*three_classes).privacy_
    bounds = {r.name: r.l2_sensitivity for r in statement.releases}
    blocks = {r.name: len(spy.of(r.name)) // r.count for r in statement.releases}
    squares = [
        (bounds[call.name] / call.release.noise_stddev) ** 2 / blocks[call.name]
        for call in spy.calls
    ]
    mu = math.sqrt(math.fsum(squares))
    assert gaussian_epsilon(mu, 1e-5) == pytest.approx(statement.epsilon, rel=1e-6)
    assert gaussian_epsilon(mu, 1e-5) <= statement.epsilon * (1 + 1e-9)
    assert squares[0] / mu**2 == pytest.approx(0.1, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("sampling_prob", few(1, [0.3, 1.0, 0.05]))
def test_sampled_fit_counts_the_mean_of_all_records(sampling_prob, three_classes, spy):
    """Against an event that is built here; the mean alone costs less."""
    clf = DPAdamLinear(
        noise_multiplier=1.5,
        accounting="pld",
        sampling_prob=sampling_prob,
        gradient_clip_norm=1.0,  # the stddev is then the multiplier
        n_iter=4,
    )
    statement = clf.fit(*three_classes).privacy_
    stddevs = {call.name: call.release.noise_stddev for call in spy.calls}
    mean = GaussianDpEvent(stddevs["feature_mean"])
    step = PoissonSampledDpEvent(sampling_prob, GaussianDpEvent(stddevs["gradient"]))
    expected = [
        PLDAccountant().compose(mean).compose(SelfComposedDpEvent(step, 4)),
        PLDAccountant().compose(SelfComposedDpEvent(step, 4)),
    ]
    both, without = (accountant.get_epsilon(1e-5) for accountant in expected)
    assert statement.epsilon >= both * (1 - 1e-6) > without
    assert statement.epsilon == pytest.approx(both, rel=2e-3)
    assert [(r.name, r.sampling_prob) for r in statement.releases] == [
        ("feature_mean", 1.0),
        ("gradient", sampling_prob),
    ]


def test_sampled_fit_releases_a_mean_however_rare_the_samples(three_classes):
    """Its part of rho is tiny, so the mean is noise, and shrunk or cut to the ball."""
    clf = DPAdamLinear(
        noise_multiplier=1.0, accounting="pld", sampling_prob=1e-9, n_iter=1
    ).fit(*three_classes)
    assert 1e9 < clf.privacy_.releases[0].noise_stddev < math.inf
    assert np.linalg.norm(clf.center_) <= 1.0 + 1e-12


def assert_noticed(spy, three_classes):
    X, y = three_classes

    def make():
        return DPLeastSquares(classes=range(3), random_state=0)

    first, second, *calls = replay(spy, make, (X, y), (X[1:], y[1:]))

    def check():
        check_sensitivity(first.privacy_, *calls)
        assert_same_state(first, second)

    with pytest.raises(AssertionError):
        check()


def test_replay_notices_a_center_without_noise(three_classes, spy, plant):
    """It releases a mean, and then takes the exact one."""
    genuine = plant.genuine("release of the mean")

    def exact_mean(rows, mechanism, expected=None):
        genuine(rows, mechanism)
        return genuine(rows, Stub())

    plant("release of the mean", exact_mean)
    assert_noticed(spy, three_classes)


def test_replay_notices_a_constant_outside_the_bound(three_classes, spy, plant):
    """The number of records beside a sum of rows that already have the whole norm."""
    genuine = plant.genuine("sum of the mean")

    def counted(rows, n_outputs):
        exact = genuine(rows, n_outputs)
        total = np.array(exact.total)
        total[0, -1] *= 10
        return replace(exact, total=total)

    plant("sum of the mean", counted)
    assert_noticed(spy, three_classes)


def test_fit_fails_on_a_center_that_is_not_released(three_classes, plant):
    plant("release of the mean", lambda *_: (np.ones(4), 9.0, 1.0))
    with pytest.raises(PrivacyError, match="feature_mean"):
        DPLeastSquares().fit(*three_classes)


def test_fit_fails_on_a_center_that_is_not_planned(three_classes, plant):
    genuine = plant.genuine("problem of a linear fit", of=classifier.DPLinearClassifier)

    def without_mean(self, y, n_features):
        problem = genuine(self, y, n_features)
        return replace(problem, queries=problem.queries[1:])

    plant("problem of a linear fit", without_mean, of=classifier.DPLinearClassifier)
    clf = DPLeastSquares()
    with pytest.raises((PrivacyError, KeyError), match="feature_mean"):
        clf.fit(*three_classes)
    assert not hasattr(clf, "coef_")


def test_fit_with_a_public_center_releases_no_mean(three_classes, spy):
    X, y = three_classes
    center = np.full(X.shape[1], 0.25)
    clf = DPFC(n_iter=2, classes=range(3), center=center).fit(X, y)
    assert [call.name for call in spy.calls] == ["gram", "gradient", "gradient"]
    np.testing.assert_array_equal(clf.center_, center)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True) - center
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(
        clf.decision_function(X), rows @ clf.coef_.T + clf.intercept_, rtol=1e-9
    )


def test_fit_refuses_a_public_center_longer_than_a_mean_of_unit_rows(three_classes):
    center = np.full(4, 0.6)
    with pytest.raises(ValueError, match="norm at most 1"):
        DPFC(classes=range(3), center=center).fit(*three_classes)
    DPFC(classes=range(3), n_iter=1, center=center, row_scaling="clip").fit(
        *three_classes
    )
