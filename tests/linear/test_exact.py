"""The estimators with ``arithmetic="exact"``: what they release, from which sums."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privfeat import (
    DPFC,
    DPAdamLinear,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPNewton,
    PrivacyError,
    PrivacyLedger,
    load,
    save,
)
from privfeat.core.bounds.sensitivity import ROUNDING
from privfeat.core.noise.exact import noisy_total
from tests.linear.replaying import answered, assert_same_state, recorded
from tests.linear.test_replay import FITS, ROW_OPTIONS, neighbours

pytestmark = pytest.mark.filterwarnings(
    "ignore::privfeat.exceptions.PrivacyWarning",
)
REGRESSION = {
    "target_bounds": (-2.0, 2.0),
    "row_scaling": "clip",
    "intercept_scaling": 0.3,
}


@pytest.fixture
def totals(plant):
    """Record every whole total that noise is added to, with its grid step."""
    seen = []

    def spy(keys, exact, stddev, **options):
        seen.append((exact.total.copy(), exact.grid_step))
        return noisy_total(keys, exact, stddev, **options)

    plant("discrete noise on a total", spy)
    return seen


def check_whole_sensitivity(statement, calls, one, two):
    """Fail if a whole total moves by more than the bound, without rounding margin.

    Squares are summed and compared as Python's integers and fractions.
    """
    for record in statement.releases:
        bound = Fraction(record.l2_sensitivity) / (1 + Fraction(ROUNDING))
        moves = [
            sum(int(x) ** 2 for x in (a - b).ravel()) * Fraction(grid_step) ** 2
            for call, (a, grid_step), (b, _) in zip(calls, one, two, strict=True)
            if call.name == record.name
        ]
        n_blocks = len(moves) // record.count
        for start in range(0, len(moves), n_blocks):
            # one part in 1e14 for the float64 evaluation of the bound itself
            moved = sum(moves[start : start + n_blocks])
            assert moved <= bound**2 * (1 + Fraction(1, 10**14))


def check_neighbours(spy, totals, make, data, others):
    """Fail if ``others`` move what a fit to ``data`` sums by more than declared."""
    totals.clear()
    one, calls = recorded(spy, make, data)
    exact = totals.copy()
    for other in others:
        totals.clear()
        two, other_calls = answered(spy, make, calls, other)
        assert [call.name for call in calls] == [call.name for call in other_calls]
        assert len(exact) == len(calls)
        check_whole_sensitivity(one.privacy_, calls, exact, totals)
        assert_same_state(one, two)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("rows", ["unit", "clip-intercept"])
@pytest.mark.parametrize("fit", FITS)
def test_whole_totals_move_by_no_more_than_declared(
    fit, rows, adjacency, spy, totals, three_classes
):
    cls, options = FITS[fit]
    options = options | ROW_OPTIONS[rows] | {"adjacency": adjacency}

    def make():
        return cls(epsilon=1.0, classes=range(3), arithmetic="exact", **options)

    for data, others in neighbours(*three_classes, adjacency):
        check_neighbours(spy, totals, make, data, others)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_whole_moments_move_by_no_more_than_declared(
    adjacency, spy, totals, three_classes
):
    def make():
        return DPLeastSquaresRegressor(
            adjacency=adjacency, arithmetic="exact", **REGRESSION
        )

    for data, others in neighbours(*three_classes, adjacency):
        check_neighbours(spy, totals, make, data, others)


def test_the_sensitivity_test_notices_rows_that_are_not_clipped(
    spy, totals, three_classes, plant
):
    genuine = plant.genuine("discrete noise on a total")

    def stretched(keys, exact, stddev, **options):
        twice = replace(exact, total=2 * exact.total)
        return genuine(keys, twice, stddev, **options)

    plant("discrete noise on a total", stretched)
    X, y = three_classes
    longer = np.vstack([X, [[1e4, 0.0, 0.0, 0.0]]]), np.append(y, 0)

    def make():
        return DPLeastSquares(arithmetic="exact", center=False)

    with pytest.raises(AssertionError, match="Fraction"):
        check_neighbours(spy, totals, make, three_classes, [longer])


@pytest.mark.parametrize(
    "model",
    [
        DPFC(n_iter=2, arithmetic="exact"),
        DPNewton(n_iter=2, arithmetic="exact", hessian_noise="full"),
        DPLeastSquares(class_gram=True, arithmetic="exact"),
        DPAdamLinear(n_iter=2, arithmetic="exact"),
        DPAdamLinear(
            noise_multiplier=4.0,
            n_iter=2,
            arithmetic="exact",
            sampling_prob=0.5,
            accounting="pld",
        ),
        DPLeastSquaresRegressor(arithmetic="exact"),
    ],
    ids=repr,
)
def test_everything_released_is_whole_and_nothing_is_drawn_in_floats(
    model, spy, totals, three_classes, plant
):
    def fail(*_):
        raise AssertionError

    for name in (
        *("Gaussian noise", "symmetric Gaussian noise"),
        "Poisson sample",
    ):
        plant(name, fail)
    model.fit(*three_classes)
    assert len(spy.calls) == len(totals) > 0
    for call, (total, grid_step) in zip(spy.calls, totals, strict=True):
        whole = call.release.value / grid_step
        np.testing.assert_array_equal(whole, np.round(whole))
        # float64 is exact here, so the noise is the difference of whole numbers
        assert np.all(np.abs(whole - total) > 0)
    assert model.privacy_.arithmetic == "exact"
    assert model.privacy_.private


def test_exact_fits_without_seed_differ(estimator, three_classes):
    one, two = (
        estimator(arithmetic="exact", random_state=None).fit(*three_classes)
        for _ in range(2)
    )
    assert np.all(one.coef_ != two.coef_)


def test_exact_fits_with_a_seed_are_reproducible_and_say_so(estimator, three_classes):
    one, two = (
        estimator(arithmetic="exact", random_state=3).fit(*three_classes)
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.privacy_.seeded
    assert not one.privacy_.private


def test_exact_noise_costs_the_same(estimator, three_classes):
    exact, ordinary = (
        estimator(arithmetic=arithmetic).fit(*three_classes).privacy_
        for arithmetic in ("exact", "float64")
    )
    assert (exact.epsilon, exact.mu) == (ordinary.epsilon, ordinary.mu)
    assert exact.releases == ordinary.releases
    assert exact.event() == ordinary.event()


def test_exact_without_privacy_is_the_ordinary_fit(estimator, three_classes):
    one, two = (
        estimator(epsilon=np.inf, arithmetic=arithmetic).fit(*three_classes)
        for arithmetic in ("exact", "float64")
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_exact_noise_of_releases_is_independent(spy, three_classes):
    """No two releases of a fit, and no two entries of one, share a draw."""
    DPLeastSquares(class_gram=True, arithmetic="exact").fit(*three_classes)
    draws = [
        noise
        for call in spy.calls
        for noise in np.unique(np.abs(call.noise[np.triu_indices_from(call.noise)]))
        if call.release.symmetric
    ]
    assert len(set(draws)) == len(draws) == 4 * 15


def test_exact_fit_survives_saving(tmp_path, three_classes):
    clf = DPFC(n_iter=2, arithmetic="exact").fit(*three_classes)
    save(clf, tmp_path / "model")
    copy = load(tmp_path / "model")
    assert copy.arithmetic == "exact"
    assert copy.privacy_ == clf.privacy_


def test_exact_fit_refuses_noise_beyond_its_grid_before_the_charge(
    three_classes, tmp_path
):
    ledger = PrivacyLedger(tmp_path / "a.ledger", dataset="a", epsilon=1.0, delta=1e-5)
    clf = DPFC(noise_multiplier=4e5, n_iter=1, center=False, arithmetic="exact")
    with pytest.raises(PrivacyError, match=r"noise must be at most 2\*\*58 units"):
        clf.set_params(ledger=ledger).fit(*three_classes)
    assert not hasattr(clf, "privacy_")
    assert not ledger.history


@pytest.mark.slow
@pytest.mark.statistical
def test_exact_arithmetic_keeps_the_accuracy():
    """Two-sided: 0.2 points are more than five standard errors of the difference."""
    rng = np.random.default_rng(1)
    means = rng.normal(size=(10, 32))
    y = rng.integers(0, 10, 16_000)
    X = means[y] + 1.7 * rng.normal(size=(16_000, 32))
    accuracy = {
        arithmetic: [
            DPFC(
                epsilon=1,
                n_iter=20,
                classes=range(10),
                arithmetic=arithmetic,
                random_state=seed,
            )
            .fit(X, y)
            .score(X, y)
            for seed in range(30)
        ]
        for arithmetic in ("exact", "float64")
    }
    difference = np.mean(accuracy["exact"]) - np.mean(accuracy["float64"])
    variances = [np.var(scores, ddof=1) / 30 for scores in accuracy.values()]
    assert np.sqrt(np.sum(variances)) < 0.0004
    assert abs(difference) < 0.002
