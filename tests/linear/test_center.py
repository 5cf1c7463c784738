"""The released mean of the rows: its bound, its noise, and what depends on it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNewton, PrivacyError
from privfeat.core.accounting.conversions import gaussian_epsilon
from privfeat.core.accounting.plan import Query
from privfeat.core.noise.release import Release
from privfeat.core.sums.processes import Team
from privfeat.core.sums.statistics import (
    exact_class_grams,
    exact_class_sums,
    exact_gradient,
    exact_gram,
)
from privfeat.linear import classifier, scaling
from privfeat.linear import rows as rows_of
from privfeat.linear.rows import BoundedRows, mean_query, release_mean
from tests import reference
from tests.linear.replaying import assert_same_state, check_sensitivity, replay
from tests.planting import plant_clip

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
FITS = {
    "ls": (DPLeastSquares, {}),
    "ls-class": (DPLeastSquares, {"class_gram": True}),
    "newton": (DPNewton, {"n_iter": 2}),
    "newton-sigmoid": (DPNewton, {"n_iter": 2, "loss": "sigmoid"}),
    "fc": (DPFC, {"n_iter": 3, "fit_intercept": True}),
    "adam": (DPAdamLinear, {"n_iter": 3}),
}
ROWS = st.lists(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e30, -1e30, 5e-324, 1e-310, 0.3, 1e-8])
    | st.floats(-1e4, 1e4),
    min_size=3,
    max_size=3,
)


class Stub:
    """A mechanism that keeps the exact sum and answers with it, or as it is told."""

    def __init__(self, answer=None, stddev=0.0):
        self.answer, self.stddev = answer, stddev

    def release(self, name, exact):
        self.name, self.exact = name, exact.value
        value = exact.value if self.answer is None else np.array([self.answer])
        return Release(name, value, self.stddev, False)


@pytest.fixture(params=FITS)
def fit(request):
    return FITS[request.param]


def bounded(X, *, row_scaling="unit", clip_norm=1.0, intercept_scaling=None):
    return BoundedRows(
        X,
        np.zeros((len(X), 1), int),
        row_scaling=row_scaling,
        clip_norm=clip_norm,
        intercept_scaling=intercept_scaling,
        team=Team(),
        private=True,
    )


def exact_sum(X, **options):
    """What `release_mean` hands to the mechanism."""
    mechanism = Stub()
    release_mean(bounded(np.asarray(X, float), **options), mechanism)
    assert mechanism.name == "feature_mean"
    assert mechanism.exact.shape == (1, np.shape(X)[1] + 1)
    return mechanism.exact


def answered(answer, stddev, *, clip_norm=1.0, row_scaling="unit"):
    """The mean that is made of a release."""
    options = {"clip_norm": clip_norm, "row_scaling": row_scaling}
    rows = bounded(np.eye(len(answer) - 1), **options)
    return release_mean(rows, Stub(answer, stddev))


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
@settings(max_examples=40)
@given(
    one=ROWS,
    two=ROWS,
    clip_norm=st.sampled_from([1e-6, 0.3, 1.0, 1e6]),
    intercept_scaling=st.sampled_from([None, 1e-6, 2.0, 1e6]),
)
def test_sum_moves_by_its_sensitivity_at_most(
    row_scaling, adjacency, one, two, clip_norm, intercept_scaling
):
    """As real numbers: the sums are exact, so no tolerance."""
    options = {
        "row_scaling": row_scaling,
        "clip_norm": clip_norm,
        "intercept_scaling": intercept_scaling,
    }
    base = [[0.3, -2.0, 1e5], [1.0, 0.0, 0.0]]
    other = [] if adjacency == "add_remove" else [two]
    move = exact_sum([*base, one], **options) - exact_sum([*base, *other], **options)
    query = mean_query([Query("gradient", 1.0)], clip_norm, adjacency, row_scaling)
    assert np.linalg.norm(move) <= query.l2_sensitivity


@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_sum_can_move_by_its_sensitivity(row_scaling, adjacency):
    """Opposite rows share the constant coordinate, unless it was clipped away."""
    options = {"row_scaling": row_scaling, "clip_norm": 0.7}
    row = [[1e9, 0.0, 0.0]]
    other = -np.array(row) if adjacency == "replace_one" else np.zeros((0, 3))
    move = np.linalg.norm(exact_sum(row, **options) - exact_sum(other, **options))
    query = mean_query([Query("gradient", 1.0)], 0.7, adjacency, row_scaling)
    shared = math.sqrt(0.8) if row_scaling == "unit" else 1.0
    expected = 0.7 if adjacency == "add_remove" else 1.4 * shared
    assert query.l2_sensitivity == pytest.approx(expected, rel=2e-6)
    assert query.l2_sensitivity * (1 - 1e-5) < move <= query.l2_sensitivity


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
@pytest.mark.parametrize("n_rows", [64, 1024])
def test_one_more_record_leaves_the_others_centred_rows_alone(
    n_rows, row_scaling, order
):
    """Bit for bit, also where it needs a chunk of its own, and in any memory order."""
    rng = np.random.default_rng(0)
    X = np.asarray(rng.normal(size=(n_rows + 1, 5)), order=order)
    center, coef = 0.2 * rng.normal(size=5), rng.normal(size=(3, 5))

    def sums(part):
        features = np.asarray(part, order=order)
        rows = bounded(features, row_scaling=row_scaling).centred(center, Stub())
        return [
            exact_gram(rows).value,
            next(exact_class_grams(rows, 1)).value,
            exact_class_sums(rows, 1).value,
            exact_gradient(rows, coef, loss="softmax", clip_norm=1.0).value,
            exact_class_sums(rows.with_constant(0.5), 1).value,
        ]

    # of one order in memory with the others, and alone
    parts = sums(X), sums(X[:n_rows]), sums(np.ascontiguousarray(X[n_rows:]))
    for together, without, alone in zip(*parts, strict=True):
        np.testing.assert_array_equal(without + alone, together)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_one_more_record_leaves_the_others_shifted_rows_alone(
    row_scaling, order, monkeypatch
):
    """Before they are rounded to the grid, which would hide most differences.

    NumPy sums a row of many columns in another order where columns are contiguous.
    """
    seen, genuine = [], scaling.clip_rows

    def clip_rows(features, **options):
        seen.append(np.array(features))
        return genuine(features, **options)

    plant_clip(monkeypatch, clip_rows)
    X = np.random.default_rng(0).normal(size=(1025, 40))
    for n_rows in (1024, 1025, 500):
        part = np.asarray(X[:n_rows], order=order)
        rows = bounded(part, row_scaling=row_scaling).centred(np.full(40, 0.1), Stub())
        list(rows.chunks())
    full, first, _, half = seen
    np.testing.assert_array_equal(full, first)
    np.testing.assert_array_equal(half[:500], first[:500])


@pytest.mark.parametrize("order", ["C", "F"])
def test_fit_over_a_chunk_boundary_differs_by_the_declared_sensitivity_alone(
    fit, order, spy
):
    cls, options = fit
    rng = np.random.default_rng(1)
    X = np.asarray(rng.normal(size=(1025, 4)) + 2.0, order=order)
    y = rng.integers(0, 3, 1025)

    def make():
        return cls(epsilon=2.0, classes=range(3), random_state=0, **options)

    two = np.asarray(X[:1024], order=order), y[:1024]
    first, second, *calls = replay(spy, make, (X, y), two)
    assert np.any(first.center_ != 0.0)
    check_sensitivity(first.privacy_, *calls)
    assert_same_state(first, second)


@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_mean_without_noise_is_the_mean(row_scaling):
    """Of rows of norm one, or of clipped rows; the grid has 20 bits."""
    X = np.random.default_rng(0).normal(size=(50, 4)) + 0.5
    options = {"row_scaling": row_scaling, "clip_norm": 3.0}
    found = release_mean(bounded(X, **options), Stub())
    expected = reference.feature_mean(X, **options)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_mean_is_shrunk_by_the_factor_of_james_and_stein():
    """The factor of a sum of squared norm 25 is ``1 - d s^2 / 25``."""
    total, n_records = np.array([3.0, 4.0, 0.0]), 10.0
    for stddev in (0.0, 0.1, 1.0, 2.0):
        found = answered([*total, 0.5 * n_records], stddev)
        expected = total * (1.0 - 3.0 * stddev**2 / 25.0) / n_records
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("stddev", [math.sqrt(25.0 / 3.0) * 1.0001, 1e3, 1e100])
def test_mean_below_its_noise_is_zero(stddev):
    np.testing.assert_array_equal(answered([3.0, 4.0, 0.0, 5.0], stddev), 0.0)


@pytest.mark.parametrize("count", [-1e6, -1.0, 0.0, 1e-9, 0.1])
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_mean_of_a_count_below_one_record_is_that_of_one_record(row_scaling, count):
    """One record of the longest row adds ``1 / sqrt(1.25)`` to the sum."""
    found = answered([0.3, 0.0, 0.0, 0.5 * count], 1e-9, row_scaling=row_scaling)
    np.testing.assert_allclose(found, [0.3 * math.sqrt(1.25), 0.0, 0.0], rtol=1e-9)


@pytest.mark.parametrize(
    ("row_scaling", "clip_norm", "radius"),
    [("unit", 0.2, 1.0), ("unit", 5.0, 1.0), ("clip", 0.2, 0.2), ("clip", 5.0, 5.0)],
)
@given(
    answer=st.lists(st.floats(-1e100, 1e100), min_size=4, max_size=4),
    stddev=st.sampled_from([1e-12, 1e-3, 1.0, 1e12]),
)
def test_mean_stays_in_the_ball(row_scaling, clip_norm, radius, answer, stddev):
    found = answered(answer, stddev, clip_norm=clip_norm, row_scaling=row_scaling)
    assert np.all(np.isfinite(found))
    assert np.linalg.norm(found) <= radius * (1 + 1e-12)


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
def test_fit_sets_the_center(fit, center, three_classes, spy):
    cls, options = fit
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
    fit, rows, three_classes, monkeypatch
):
    """The rows that `_solve` saw times the coefficients that it found."""
    cls, options = fit
    X, y = three_classes
    seen, genuine = [], cls._solve

    def solve(self, rows, mechanism, shape):
        coef = genuine(self, rows, mechanism, shape)
        (chunk,) = rows.chunks()
        seen.append(np.asarray(chunk.rows, float)[: len(X)] * rows.step @ coef.T)
        return coef

    monkeypatch.setattr(cls, "_solve", solve)
    clf = cls(noise_multiplier=1e-3, **(options | rows)).fit(X, y)
    assert np.any(clf.center_ != 0.0)
    scale = np.max(np.abs(seen[0])) * float(rows.get("clip_norm", 1.0))
    np.testing.assert_allclose(clf.decision_function(X), seen[0], atol=1e-5 * scale)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_fit_for_users_multiplies_the_sensitivity_of_the_mean(
    fit, adjacency, three_classes
):
    cls, options = fit
    X, y = three_classes
    clf = cls(adjacency=adjacency, clip_norm=0.5, max_group_size=6, **options)
    mean = clf.fit(X, y, np.arange(31) // 4).privacy_.releases[0]
    pair = 1.0 if adjacency == "add_remove" else 2.0 * math.sqrt(0.8)
    assert mean.name == "feature_mean"
    assert mean.l2_sensitivity == pytest.approx(6 * 0.5 * pair, rel=1e-6)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    "budget", [{"epsilon": 2.0}, {"rho": 0.3}, {"noise_multiplier": 5.0}]
)
def test_cost_of_all_draws_is_that_of_the_statement(
    fit, budget, adjacency, three_classes, spy
):
    """From the stddev of each draw and the bound of its query, blocks taken together.

    The mean gets a tenth.
    """
    cls, options = fit
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


@pytest.mark.parametrize("sampling_prob", [1.0, 0.3, 0.05])
def test_sampled_fit_counts_the_mean_of_all_records(sampling_prob, three_classes, spy):
    """Against an event that is built here; the mean alone costs less."""
    clf = DPAdamLinear(
        noise_multiplier=1.5,
        accounting="pld",
        sampling_prob=sampling_prob,
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


def test_replay_notices_a_center_without_noise(three_classes, spy, monkeypatch):
    """It releases a mean, and then takes the exact one."""
    genuine = rows_of.release_mean

    def exact_mean(rows, mechanism):
        genuine(rows, mechanism)
        return genuine(rows, Stub())

    monkeypatch.setattr(rows_of, "release_mean", exact_mean)
    assert_noticed(spy, three_classes)


def test_replay_notices_a_constant_outside_the_bound(three_classes, spy, monkeypatch):
    """The number of records beside a sum of rows that already have the whole norm."""
    genuine = rows_of.exact_class_sums

    def counted(rows, n_outputs):
        exact = genuine(rows, n_outputs)
        total = np.array(exact.total)
        total[0, -1] *= 10
        return replace(exact, total=total)

    monkeypatch.setattr(rows_of, "exact_class_sums", counted)
    assert_noticed(spy, three_classes)


def test_fit_fails_on_a_center_that_is_not_released(three_classes, monkeypatch):
    monkeypatch.setattr(rows_of, "release_mean", lambda rows, mechanism: np.ones(4))
    with pytest.raises(PrivacyError, match="feature_mean"):
        DPLeastSquares().fit(*three_classes)


def test_fit_fails_on_a_center_that_is_not_planned(three_classes, monkeypatch):
    genuine = classifier.DPLinearClassifier._problem

    def without_mean(self, y, n_features):
        problem = genuine(self, y, n_features)
        return replace(problem, queries=problem.queries[1:])

    monkeypatch.setattr(classifier.DPLinearClassifier, "_problem", without_mean)
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
