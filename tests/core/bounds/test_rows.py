import itertools
import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfeat.core.bounds import rows as bounds
from privfeat.core.bounds.clipping import SHRINK
from privfeat.core.bounds.grid import MAX_COLUMNS, grid_step
from tests import reference
from tests.core.bounds.hard_numbers import (
    NOT_FINITE,
    arrays,
    as_type,
    assert_bounded,
    entries,
    exact_norm_squared,
)


def clip_rows(features, **options):
    return bounds.clip_rows(features, **options).rows


CLIP_NORMS = [1e-6, 0.3, 1.0, 1e6]
INTERCEPTS = [None, 1e-6, 0.5, 1e6]
# each is compiled: all others are slow tests
FAST = {(norm, 0.5) for norm in CLIP_NORMS} | {(1.0, scale) for scale in INTERCEPTS}
PAIRS = [
    pytest.param(*pair, marks=() if pair in FAST else pytest.mark.slow)
    for pair in itertools.product(CLIP_NORMS, INTERCEPTS)
]
dtypes = st.sampled_from([np.float16, np.float32, np.float64])


@settings(max_examples=25)
@pytest.mark.parametrize(("clip_norm", "intercept_scaling"), PAIRS)
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
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


def test_clip_rows_takes_the_shortest_rows_for_zero():
    lengths = [0.0, 5e-324, 2.0**-1000, 2.0**-993, 2.0**-991, 2.0**1023]
    rows = np.outer(lengths, [1.0, 0.0])
    found = clip_rows(rows, clip_norm=0.7, row_scaling="unit")
    assert (np.asarray(found)[:, 0] > 0).tolist() == [False] * 4 + [True] * 2


@pytest.mark.parametrize("rows", [np.ones((1, 2), np.float32), jnp.ones((1, 2))])
def test_clip_rows_has_one_program_and_takes_no_shorter_types(rows):
    with pytest.raises(TypeError, match="features must be float64, got float32"):
        clip_rows(rows, clip_norm=1.0, row_scaling="unit")


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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
def test_rows_on_the_grid_that_are_longer_by_one_rounding_are_shortened(row_scaling):
    """Whole rows of norm ``sqrt(N)``, for a radius that is the float below it."""
    rng, step = np.random.default_rng(0), 2.0**-20
    # each is compiled; of the first twelve none shows a margin that is missing
    for row in rng.integers(-600_000, 600_000, (20, 3))[12:]:
        radius = math.nextafter(math.sqrt(exact_norm_squared(row)), 0.0) * step
        if not 0.5 < radius <= 1.0:
            continue
        assert grid_step(radius) == step
        (found,) = clip_rows(
            (row * step)[None],
            clip_norm=radius,
            row_scaling=row_scaling,
        )
        assert exact_norm_squared(found) <= (Fraction(radius) / Fraction(step)) ** 2
