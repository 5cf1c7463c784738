"""Rows whose squares, or sums of them, are hard for short numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privfeat.core.bounds import rows as bounds
from privfeat.core.bounds.grid import MAX_COLUMNS, grid_step
from tests.core.bounds.hard_numbers import as_type, assert_bounded, exact_norm_squared


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
        shortest = Fraction(1, 2**992)
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
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_clip_rows_bounds_the_widest_rows(n_features, row_scaling):
    features = hard_rows(n_features).astype(np.float64)
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


def test_clip_rows_takes_rows_near_the_subnormal_numbers_for_zero():
    """Whether or not a device takes subnormal numbers for zero."""
    features = np.zeros((2, 50_000))
    features[0], features[1, 0] = 2.0**-1032, 2.0**-991
    features[1, 1:] = np.nextafter(np.finfo(np.float64).tiny, 0.0)
    short, unit = bounds.clip_rows(features, clip_norm=1.0, row_scaling="unit").rows
    assert not np.any(short)
    assert 2**20 - 2 <= unit[0] <= 2**20
    assert not np.any(unit[1:])
