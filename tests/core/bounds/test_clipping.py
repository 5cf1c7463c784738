import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from privfeat.core.bounds.clipping import MAX_COLUMNS, SHRINK, clip_residuals, clip_rows
from privfeat.core.bounds.grid import grid_step
from tests import reference

CLIP_NORMS = [1e-6, 0.3, 1.0, 1e6]
INTERCEPTS = [None, 1e-6, 0.5, 1e6]
EXTREMES = [0.0, 1.0, -1.0, 1e38, -1e300, 1.7e308, 5e-324, 1e-310, 3e-39, np.pi]
NOT_FINITE = [math.nan, math.inf, -math.inf]
entries = st.one_of(st.sampled_from(EXTREMES), st.floats(-1e3, 1e3))
dtypes = st.sampled_from([np.float16, np.float32, np.float64])


def arrays(elements, shape=(4, 3)):
    return hnp.arrays(np.float64, shape, elements=elements)


def as_type(features, dtype):
    """Cast; what overflows becomes infinite, as in a user's low-precision file."""
    with np.errstate(over="ignore", under="ignore"):
        return features.astype(dtype)


def exact_norm_squared(row):
    return sum(int(entry) ** 2 for entry in row)


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
    features[np.abs(features) < 1e-300] = 0.0
    options = {
        "clip_norm": 0.7,
        "row_scaling": row_scaling,
        "intercept_scaling": intercept_scaling,
    }
    found = np.asarray(clip_rows(features, **options), np.float64) * grid_step(0.7)
    expected = reference.bounded_rows(features, **options)
    assert np.max(np.abs(found - expected)) <= 1.01 * grid_step(0.7)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
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
)
def test_clip_rows_treats_each_row_alone(
    row_scaling, intercept_scaling, features, others, place
):
    options = {
        "clip_norm": 1.0,
        "row_scaling": row_scaling,
        "intercept_scaling": intercept_scaling,
    }
    row = features[0]
    others[place] = row
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


def clipped_residuals(residuals, row_norms, **options):
    """By NumPy, and equal by JAX."""
    residuals, row_norms = np.asarray(residuals, float), np.asarray(row_norms, float)
    with np.errstate(all="ignore"):
        clipped = clip_residuals(residuals, row_norms, **options)
    with jax.enable_x64(True):
        compiled = clip_residuals(
            jnp.asarray(residuals), jnp.asarray(row_norms), **options
        )
    assert isinstance(clipped, np.ndarray)
    np.testing.assert_array_equal(clipped, compiled)
    return clipped


@settings(max_examples=60)
@pytest.mark.parametrize("clip_norm", [1e-3, 1.0, 50.0])
@given(
    residuals=arrays(st.one_of(entries, st.sampled_from(NOT_FINITE))),
    row_norms=hnp.arrays(np.float64, (4,), elements=st.floats(0.0, 2.0)),
)
def test_clip_residuals_bounds_every_gradient(clip_norm, residuals, row_norms):
    """``norm(r) norm(x) <= C_g`` and ``norm(r) <= radius``, in exact arithmetic."""
    found = clipped_residuals(
        residuals, row_norms, clip_norm=clip_norm, radius=1.5, largest=2.0
    )
    step = Fraction(grid_step(2.0))
    assert np.all(found == np.trunc(found))
    assert np.all(np.abs(found) <= 2**20)
    for residual, row_norm in zip(found, row_norms, strict=True):
        norm_squared = exact_norm_squared(residual) * step**2
        assert norm_squared <= Fraction(1.5) ** 2
        assert norm_squared * Fraction(row_norm) ** 2 <= Fraction(clip_norm) ** 2


@pytest.mark.parametrize("bad", NOT_FINITE)
def test_clip_residuals_drops_one_that_is_not_finite(bad):
    found = clipped_residuals(
        [[0.5, 0.5], [bad, 0.5]], [1.0, 1.0], clip_norm=1.0, radius=2.0, largest=1.0
    )
    assert np.all(found[1] == 0.0)
    assert np.all(found[0] > 0.0)


def test_clip_residuals_is_the_papers_clip_of_the_gradient():
    rng = np.random.default_rng(0)
    residuals, rows = rng.normal(size=(20, 3)), rng.normal(size=(20, 4))
    found = clipped_residuals(
        residuals,
        np.linalg.norm(rows, axis=1),
        clip_norm=0.8,
        radius=100.0,
        largest=4.0,
    )
    for residual, clipped, row in zip(residuals, found, rows, strict=True):
        expected = reference.clip(np.outer(residual, row), 0.8)
        gradient = np.outer(clipped * grid_step(4.0), row)
        np.testing.assert_allclose(gradient, expected, atol=2e-5)


@pytest.mark.validation
@pytest.mark.parametrize("n_columns", [200_000, 200_001])
def test_clip_rows_refuses_more_columns_than_its_margin_covers(n_columns):
    with pytest.raises(ValueError, match=f"fewer than 200000 columns, got {n_columns}"):
        clip_rows(np.zeros((1, n_columns)), clip_norm=1.0, row_scaling="unit")


def test_the_margin_covers_the_rounding_of_the_longest_row():
    """As the proof of `clip_rows` needs it: norm, quotient and products."""
    rounding = (Fraction(MAX_COLUMNS) / 2 + 5) / 2**53
    assert rounding < 1 - Fraction(SHRINK)


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


@pytest.mark.parametrize("margin", [2.0**-40, 2.0**-50])
def test_residuals_just_below_the_grid_are_not_lifted_to_it(margin):
    """A limit of ``(1 - margin) / 2``, where 1/2 is on the grid."""
    clip_norm = 0.5 * (1.0 - margin)
    with jax.enable_x64(True):
        clipped = clip_residuals(
            jnp.ones((1, 1)), jnp.ones(1), clip_norm=clip_norm, radius=1.0, largest=1.0
        )
        (whole,) = np.asarray(clipped)[0]
    assert 2.0**19 - 2 < whole
    assert whole * 2.0**-20 <= clip_norm
