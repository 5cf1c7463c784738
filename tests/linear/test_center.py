"""The released mean of the rows: its bound, its noise, and what depends on it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfeat.core.accounting.plan import Query
from privfeat.core.sums.processes import Team
from privfeat.core.sums.statistics import (
    exact_class_grams,
    exact_class_sums,
    exact_gradient,
    exact_gram,
)
from privfeat.estimation.rows import scaling
from privfeat.estimation.rows.bounded import LEAST_VARIED, BoundedRows, release_mean
from privfeat.linear.problem import mean_query
from tests import reference
from tests.combinations import few
from tests.linear.centers import Stub
from tests.linear.replaying import assert_same_state, check_sensitivity, replay

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
ROWS = st.lists(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e30, -1e30, 5e-324, 1e-310, 0.3, 1e-8])
    | st.floats(-1e4, 1e4),
    min_size=3,
    max_size=3,
)


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
    return release_mean(rows, Stub(answer, stddev))[0]


@pytest.mark.slow
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
    row_scaling, order, plant
):
    """Before they are rounded to the grid, which would hide most differences.

    NumPy sums a row of many columns in another order where columns are contiguous.
    """
    seen, genuine = [], scaling.clip_rows

    def clip_rows(features, **options):
        seen.append(np.array(features))
        return genuine(features, **options)

    plant("clip of rows", clip_rows)
    X = np.random.default_rng(0).normal(size=(1025, 40))
    for n_rows in (1024, 1025, 500):
        part = np.asarray(X[:n_rows], order=order)
        rows = bounded(part, row_scaling=row_scaling).centred(np.full(40, 0.1), Stub())
        list(rows.chunks())
    full, first, _, half = seen
    np.testing.assert_array_equal(full, first)
    np.testing.assert_array_equal(half[:500], first[:500])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_rows_that_are_almost_the_center_are_bounded(row_scaling, dtype):
    """What is left of them is the rounding of their difference."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(1, 33)), 400, axis=0)
    X[1:] *= 1.0 + rng.integers(-8, 9, (399, 33)) * float(np.finfo(dtype).eps) / 4
    X = X.astype(dtype)
    center = X[0].astype(np.float64)
    if row_scaling == "unit":
        center /= np.linalg.norm(center)
    rows = bounded(X, row_scaling=row_scaling).centred(center, Stub())
    (chunk,) = rows.chunks()
    found = np.asarray(chunk.rows).astype(np.int64)
    assert np.all(np.sum(found**2, axis=1) * Fraction(rows.step) ** 2 <= 1)
    assert np.any(found[1:400]) or row_scaling == "clip"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_centred_rows_that_are_not_finite_are_refused(row_scaling, dtype, bad):
    X = np.ones((4, 3), dtype)
    X[2, 1] = bad
    rows = bounded(X, row_scaling=row_scaling).centred(np.full(3, 0.1), Stub())
    with pytest.raises(ValueError, match="X must not contain NaN or infinity"):
        list(rows.chunks())


@pytest.mark.parametrize("order", ["C", "F"])
def test_fit_over_a_chunk_boundary_differs_by_the_declared_sensitivity_alone(
    centred, order, spy
):
    cls, options = centred
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


def test_noise_tells_how_much_of_the_mean_is_left_in_rows():
    answer = np.array([60.0, *[0.0] * 98, 80.0])
    shares = [
        release_mean(bounded(np.eye(99)), Stub(answer, stddev))[2]
        for stddev in (0.0, 0.1, 2.0, 100.0)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1.0 > shares[1] > 0.99
    assert shares[-1] == LEAST_VARIED


@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_mean_without_noise_is_the_mean(row_scaling):
    """Of rows of norm one, or of clipped rows; the grid has 20 bits."""
    X = np.random.default_rng(0).normal(size=(50, 4)) + 0.5
    options = {"row_scaling": row_scaling, "clip_norm": 3.0}
    found, _, varied = release_mean(bounded(X, **options), Stub())
    assert varied == 1.0
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row_scaling", "clip_norm", "radius"),
    few(
        2,
        [
            ("unit", 0.2, 1.0),
            ("clip", 5.0, 5.0),
            ("unit", 5.0, 1.0),
            ("clip", 0.2, 0.2),
        ],
    ),
)
@given(
    answer=st.lists(st.floats(-1e100, 1e100), min_size=4, max_size=4),
    stddev=st.sampled_from([1e-12, 1e-3, 1.0, 1e12]),
)
def test_mean_stays_in_the_ball(row_scaling, clip_norm, radius, answer, stddev):
    found = answered(answer, stddev, clip_norm=clip_norm, row_scaling=row_scaling)
    assert np.all(np.isfinite(found))
    assert np.linalg.norm(found) <= radius * (1 + 1e-12)
