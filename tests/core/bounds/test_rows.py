import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfeat.core.bounds import rows as bounds
from privfeat.core.bounds.clipping import SHRINK
from privfeat.core.bounds.grid import grid_step
from privfeat.core.bounds.rows import MAX_COLUMNS
from tests import reference
from tests.core.bounds.hard_numbers import (
    NOT_FINITE,
    arrays,
    entries,
    exact_norm_squared,
)


def clip_rows(features, **options):
    return bounds.clip_rows(features, **options).rows


CLIP_NORMS = [1e-6, 0.3, 1.0, 1e6]
INTERCEPTS = [None, 1e-6, 0.5, 1e6]
dtypes = st.sampled_from([np.float16, np.float32, np.float64])


def as_type(features, dtype):
    """Cast; what overflows becomes infinite, as in a user's low-precision file."""
    with np.errstate(over="ignore", under="ignore"):
        return features.astype(dtype)


def assert_bounded(rows, clip_norm):
    """Whole numbers of at most 20 bits whose norm is at most ``clip_norm``, exactly."""
    rows = np.asarray(rows)
    assert rows.dtype == np.float32
    assert np.all(rows == np.trunc(rows))
    assert np.all(np.abs(rows) <= 2**20)
    limit = (Fraction(clip_norm) / Fraction(grid_step(clip_norm))) ** 2
    assert all(exact_norm_squared(row) <= limit for row in rows)


@settings(max_examples=25)
@pytest.mark.parametrize("clip_norm", CLIP_NORMS)
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
@pytest.mark.parametrize("intercept_scaling", INTERCEPTS)
@given(features=arrays(st.one_of(entries, st.sampled_from(NOT_FINITE))), dtype=dtypes)
def test_clip_rows_bounds_every_row(
    clip_norm, row_scaling, intercept_scaling, features, dtype
):
    rows = clip_rows(
        as_type(features, dtype),
        clip_norm=clip_norm,
        row_scaling=row_scaling,
        intercept_scaling=intercept_scaling,
    )
    assert_bounded(rows, clip_norm)


@pytest.mark.parametrize("n_features", [1, 2, 100, 3000])
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_clip_rows_bounds_wide_rows(n_features, row_scaling):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20, n_features)) * 100.0
    features[0] = 1.0  # all entries equal: rounding errors add up
    rows = clip_rows(features, clip_norm=1.0, row_scaling=row_scaling)
    assert_bounded(rows, 1.0)


@settings(max_examples=60)
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
@pytest.mark.parametrize("intercept_scaling", [None, 0.5])
@given(features=arrays(st.one_of(st.just(0.0), st.floats(-1e3, 1e3))))
def test_clip_rows_is_the_papers_clip_up_to_the_grid(
    row_scaling, intercept_scaling, features
):
    features[np.abs(features) < 1e-290] = 0.0  # shorter rows count as zero
    options = {
        "clip_norm": 0.7,
        "row_scaling": row_scaling,
        "intercept_scaling": intercept_scaling,
    }
    found = np.asarray(clip_rows(features, **options), np.float64) * grid_step(0.7)
    expected = reference.bounded_rows(features, **options)
    assert np.max(np.abs(found - expected)) <= 1.01 * grid_step(0.7)


@pytest.mark.parametrize("scale", [1e-298, 1e-30, 1.0, 1e30, 1e300])
def test_clip_rows_unit_does_not_depend_on_the_scale(scale):
    features = np.array([[3.0, -4.0, 0.0]]) * scale
    rows = clip_rows(features, clip_norm=1.0, row_scaling="unit")
    np.testing.assert_allclose(rows * grid_step(1.0), [[0.6, -0.8, 0.0]], atol=2e-6)


@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
@pytest.mark.parametrize("intercept_scaling", [None, 0.5])
@pytest.mark.parametrize("bad", NOT_FINITE)
def test_clip_rows_drops_a_row_that_is_not_finite(row_scaling, intercept_scaling, bad):
    features = np.array([[1.0, 2.0, 3.0], [1.0, bad, 3.0]])
    rows = clip_rows(
        features,
        clip_norm=1.0,
        row_scaling=row_scaling,
        intercept_scaling=intercept_scaling,
    )
    assert np.all(np.asarray(rows)[1] == 0.0)
    assert np.any(np.asarray(rows)[0] != 0.0)


@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_clip_rows_keeps_a_zero_row_at_zero(row_scaling):
    rows = clip_rows(np.zeros((2, 3)), clip_norm=1.0, row_scaling=row_scaling)
    assert np.all(np.asarray(rows) == 0.0)


@settings(max_examples=60)
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
@pytest.mark.parametrize("intercept_scaling", [None, 0.5])
@given(
    features=arrays(entries),
    others=arrays(st.one_of(entries, st.sampled_from(NOT_FINITE))),
    place=st.integers(0, 3),
    dtype=dtypes,
)
def test_clip_rows_treats_each_row_alone(
    row_scaling, intercept_scaling, features, others, place, dtype
):
    options = {
        "clip_norm": 1.0,
        "row_scaling": row_scaling,
        "intercept_scaling": intercept_scaling,
    }
    features, others = as_type(features, dtype), as_type(others, dtype)
    others[place] = features[0]
    alone = np.asarray(clip_rows(features, **options))[0]
    among = np.asarray(clip_rows(others, **options))[place]
    np.testing.assert_array_equal(alone, among)


def test_clip_rows_accepts_no_rows():
    rows = clip_rows(np.zeros((0, 3)), clip_norm=1.0, row_scaling="unit")
    assert rows.shape == (0, 3)


@pytest.mark.validation
@pytest.mark.parametrize("name", ["clip_norm", "intercept_scaling"])
@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0.0, ValueError),
        (-1.0, ValueError),
        (math.nan, ValueError),
        (math.inf, ValueError),
        (1e7, ValueError),
        (1e-7, ValueError),
        (True, TypeError),
        ("1", TypeError),
    ],
)
def test_clip_rows_refuses_a_wrong_radius(name, value, error):
    options = {"clip_norm": 1.0, "intercept_scaling": None, name: value}
    with pytest.raises(error, match=f"{name} must be"):
        clip_rows(np.zeros((1, 2)), row_scaling="unit", **options)


@pytest.mark.validation
@pytest.mark.parametrize(
    ("value", "error"), [("UNIT", ValueError), ("", ValueError), (None, TypeError)]
)
def test_clip_rows_refuses_a_wrong_row_scaling(value, error):
    with pytest.raises(error, match="row_scaling must be"):
        clip_rows(np.zeros((1, 2)), clip_norm=1.0, row_scaling=value)


@pytest.mark.validation
@pytest.mark.parametrize("n_columns", [200_000, 200_001])
def test_clip_rows_refuses_more_columns_than_its_margin_covers(n_columns):
    with pytest.raises(ValueError, match=f"fewer than 200000 columns, got {n_columns}"):
        clip_rows(np.zeros((1, n_columns)), clip_norm=1.0, row_scaling="unit")


def test_the_margin_covers_the_rounding_of_the_longest_row():
    """As the proof of `clip_rows` needs it: norm, quotient, products, subnormals."""
    rounding = 1 / (1 - (Fraction(MAX_COLUMNS) / 2 + 90) / 2**53)
    rounding *= 1 + Fraction(1, 2**42)
    assert rounding * Fraction(SHRINK) < 1


@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_rows_on_the_grid_that_are_longer_by_one_rounding_are_shortened(row_scaling):
    """Whole rows of norm ``sqrt(N)``, for a radius that is the float below it."""
    rng, step = np.random.default_rng(0), 2.0**-20
    for row in rng.integers(-600_000, 600_000, (20, 3)):
        radius = math.nextafter(math.sqrt(exact_norm_squared(row)), 0.0) * step
        if not 0.5 < radius <= 1.0:
            continue
        assert grid_step(radius) == step
        (found,) = clip_rows(
            jnp.asarray(row * step, jnp.float32)[None],
            clip_norm=radius,
            row_scaling=row_scaling,
        )
        assert exact_norm_squared(found) <= (Fraction(radius) / Fraction(step)) ** 2


def hard_rows(n_features):
    """Rows of float32 whose squares, or sums of them, are hard for short numbers."""
    tiny, small, large = np.float32([2.0**-149, 2.0**-126, 3e38])
    rng = np.random.default_rng(0)
    rows = np.zeros((16, n_features), np.float32)
    rows[0], rows[1], rows[2] = tiny, small, large
    rows[3], rows[3, 0] = tiny, large
    rows[4], rows[4, -1] = np.float32(2.0**-12), 1.0  # squares of half a rounding
    rows[5] = 2.0 ** rng.integers(-149, 127, n_features)
    rows[6] = 2.0 ** -rng.integers(0, 20, n_features)
    rows[7] = np.float32(1.0) + np.float32(2.0**-23)
    rows[8] = np.nextafter(np.float32(1.0), np.float32(0.0))
    rows[9] = rng.standard_normal(n_features)
    rows[10] = rng.integers(-(2**24), 2**24, n_features)
    rows[11], rows[11, 0] = np.nextafter(small, np.float32(0.0)), np.float32(2.0**-95)
    rows[12], rows[12, ::2] = 1e-30, -1e30
    rows[13, 0] = 1.0
    rows[14, -1] = -large
    return rows


def exact_row(row, clip_norm, row_scaling, constant):
    """The bounded row in grid steps, without rounding: each entry to 200 bits."""
    whole = [*map(Fraction, row.tolist())]
    norm = exact_root(sum(entry**2 for entry in whole))
    limit, step = Fraction(clip_norm), Fraction(grid_step(clip_norm))
    if row_scaling == "unit":
        share = 1 / exact_root(1 + Fraction(constant or 0) ** 2)
        shortest = Fraction(1, 2 ** (992 if row.dtype == np.float64 else 96))
        factor = limit * share / norm if norm >= shortest else Fraction(0)
        appended = [] if constant is None else [Fraction(constant) * share * limit]
    else:
        appended = [] if constant is None else [Fraction(constant)]
        norm = exact_root(norm**2 + sum(entry**2 for entry in appended))
        factor = min(Fraction(1), limit / norm) if norm else Fraction(0)
        appended = [entry * factor for entry in appended]
    return [entry / step for entry in (*(e * factor for e in whole), *appended)]


def exact_root(square):
    shift = 2 * max(200, 200 + square.denominator.bit_length())
    return Fraction(math.isqrt((square.numerator << shift) // square.denominator)) / (
        2 ** (shift // 2)
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("clip_norm", [1e-6, 0.3, 1e6])
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
@pytest.mark.parametrize("intercept_scaling", [None, 0.5])
def test_clip_rows_of_hard_rows_is_the_exact_clip_rounded_towards_zero(
    clip_norm, row_scaling, intercept_scaling, dtype
):
    features = as_type(hard_rows(9), dtype)
    options = {"row_scaling": row_scaling, "intercept_scaling": intercept_scaling}
    clipped = bounds.clip_rows(features, clip_norm=clip_norm, **options)
    assert_bounded(clipped.rows, clip_norm)
    assert np.array_equal(clipped.finite, np.isfinite(features).all(axis=1))
    step = Fraction(grid_step(clip_norm))
    for row, found, norm in zip(features, *map(np.asarray, clipped[:2]), strict=True):
        assert exact_norm_squared(found) * step**2 <= Fraction(float(norm)) ** 2
        assert norm <= clip_norm
        if not np.isfinite(row).all():
            assert not found.any()
            continue
        expected = exact_row(row, clip_norm, row_scaling, intercept_scaling)
        for entry, whole in zip(expected, map(int, found), strict=True):
            assert whole * entry >= 0
            assert -Fraction(1, 2**10) <= abs(entry) - abs(whole) <= 1 + Fraction(1, 99)


@pytest.mark.parametrize("n_features", [1000, MAX_COLUMNS - 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_clip_rows_bounds_the_widest_rows(n_features, dtype, row_scaling):
    features = hard_rows(n_features).astype(dtype)
    clipped = bounds.clip_rows(features, clip_norm=0.7, row_scaling=row_scaling)
    rows = np.asarray(clipped.rows)
    assert np.all(np.abs(rows) <= 2**20)
    limit = (Fraction(0.7) / Fraction(grid_step(0.7))) ** 2
    # at most 2**58: exact in int64
    squares = np.sum(rows.astype(np.int64) ** 2, axis=1)
    assert all(int(square) <= limit for square in squares)
    assert np.all(np.asarray(clipped.norms) * 2**20 >= np.sqrt(squares))
    longest = np.sqrt(squares[2:3].astype(float)) * grid_step(0.7)
    assert longest > 0.7 - 2.0**-20 * math.sqrt(n_features)


@pytest.mark.parametrize(
    ("dtype", "shortest"),
    [(np.float32, -96), (np.float64, -992)],
)
def test_clip_rows_takes_rows_near_the_subnormal_numbers_for_zero(dtype, shortest):
    """Whether or not a device takes subnormal numbers for zero."""
    features = np.zeros((2, 50_000), dtype)
    features[0], features[1, 0] = 2.0 ** (shortest - 40), 2.0 ** (shortest + 1)
    smallest_normal = np.finfo(dtype).tiny
    features[1, 1:] = np.nextafter(smallest_normal, dtype(0.0))
    short, unit = clip_rows(features, clip_norm=1.0, row_scaling="unit")
    assert not np.any(short)
    assert 2**20 - 2 <= unit[0] <= 2**20
    assert not np.any(unit[1:])
