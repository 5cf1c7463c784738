import math

import numpy as np
import pytest

from privfeat.core.bounds.clipping import SHRINK
from privfeat.core.bounds.grid import (
    CLIP_RANGE,
    COEF_BITS,
    MAX_COLUMNS,
    check_width,
    grid_step,
    whole_coef,
)


@pytest.mark.parametrize("bound", [1e-6, 0.5, 0.7, 1.0, 1.0 + 2**-52, 3.0, 1e6])
def test_grid_step_is_the_smallest_power_of_two_that_suffices(bound):
    step = grid_step(bound)
    assert math.frexp(step)[0] == 0.5
    assert bound <= 2**20 * step
    assert bound > 2**20 * step / 2


def test_rows_are_shorter_than_the_margin_of_their_norms_covers():
    """A sum of ``n`` squares is off by ``n 2**-53`` at most, and its root by half."""
    assert (MAX_COLUMNS / 2 + 4) * 2.0**-53 < 1.0 - SHRINK < 2.0**-35
    check_width(199_999)
    with pytest.raises(ValueError, match="fewer than 200000 columns, got 200000"):
        check_width(200_000)


def test_norms_to_which_anything_is_clipped_have_steps_that_are_numbers():
    assert CLIP_RANGE == (1e-6, 1e6)
    assert [2.0**20 * grid_step(norm) for norm in CLIP_RANGE] == [2.0**-19, 2.0**20]


@pytest.mark.parametrize("largest", [2.0**-40, 0.3, 1.0, 2.0, 3.0, 2.0**60])
def test_coefficients_become_whole_and_fill_their_bits(largest):
    """Whole numbers of norm at most 2**32: their products with rows are exact."""
    coef = np.array([[0.6, 0.0, -0.8], [0.1, 0.2, 0.3]]) * largest
    whole, step = whole_coef(coef, private=True)
    np.testing.assert_array_equal(whole, np.trunc(whole))
    norms = np.linalg.norm(whole, axis=1)
    assert 2**31 - 2 < norms.max() <= 2**32
    np.testing.assert_allclose(whole * step, coef, atol=largest * 2.0**-31)


@pytest.mark.parametrize("shape", [(1, 400), (400, 1)])
def test_the_longest_row_decides_the_unit(shape):
    whole, _ = whole_coef(np.ones(shape), private=True)
    assert 2**31 - 400 < np.linalg.norm(whole, axis=1).max() <= 2**32


def test_products_of_rows_and_coefficients_fit_into_float64():
    assert 20 + COEF_BITS <= 53


@pytest.mark.parametrize("coef", [np.zeros((2, 3)), np.zeros((0, 3))])
def test_coefficients_of_zero_stay_zero(coef):
    whole, step = whole_coef(coef, private=True)
    np.testing.assert_array_equal(whole, coef)
    assert np.isfinite(step)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_coefficients_that_are_not_finite_make_no_number(bad):
    whole, _ = whole_coef(np.array([[bad, 1.0]]), private=True)
    assert np.isnan(whole).all()


def test_coefficients_without_privacy_stay_as_they_are():
    coef = np.array([[0.1, np.pi]])
    whole, step = whole_coef(coef, private=False)
    assert whole is coef
    assert step == 1.0
