from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from privfeat.core.bounds.clipping import bounded_roots, clip_residuals
from privfeat.core.bounds.grid import grid_step
from tests import reference
from tests.core.bounds.hard_numbers import (
    NOT_FINITE,
    arrays,
    entries,
    exact_norm_squared,
)


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


def test_clipped_residuals_are_multiplied_by_weights():
    found = clipped_residuals(
        np.ones((3, 1)),
        np.ones(3),
        clip_norm=0.5,
        radius=1.0,
        largest=1.0,
        weights=np.array([1.0, 0.25, 0.0]),
    )
    assert 2.0**19 - 1 <= found[0, 0] <= 2.0**19
    np.testing.assert_array_equal(found[1:, 0], [2.0**17 - 1, 0.0])


def test_roots_of_weights_have_the_bound_of_so_many_outputs():
    """Of one record with five outputs, each at its largest weight."""
    roots = bounded_roots(np.full((1, 5), 0.3), "sigmoid")
    assert 0.5 * (1.0 - 2.0**-30) < roots.min() == roots.max() < 0.5
