"""Totals of batch sums: whole numbers, whatever the order, the parts and the values."""

from fractions import Fraction

import hypothesis.extra.numpy as arrays_of
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfeat.core.sums.batches import BatchTotal, batch_unit
from privfeat.exceptions import PrivacyError

RADIUS = 0.37


def total_of(parts, batch_size=32, private=True):
    total = BatchTotal(private, len(parts[0]), batch_size, RADIUS)
    for part in parts:
        total.add(jnp.asarray(part))
    return total.sum()


def rounded(value, unit):
    """Return, in fractions, the whole number next to the float64 product."""
    return round(Fraction(float(np.float64(value) * np.float64(1.0 / (RADIUS * unit)))))


@given(
    parts=st.lists(
        arrays_of.arrays(np.float32, 3, elements=st.floats(-11.5, 11.5, width=32)),
        min_size=1,
        max_size=5,
    )
)
def test_totals_are_the_sums_of_what_each_batch_is_rounded_to(parts):
    """Integers of Python are the reference; subnormal numbers are among the values."""
    found, unit = total_of(parts), batch_unit(32)
    for place in range(3):
        expected = sum(rounded(part[place], unit) for part in parts)
        # XLA may flush what is subnormal to zero: the same, whatever the others are
        assert int(found.total[place]) == expected
    np.testing.assert_array_equal(total_of(parts[::-1]).total, found.total)


def test_adding_a_batch_moves_the_total_by_its_own_numbers_alone():
    """Beside numbers that would swallow it in floating point, as well."""
    small = np.float32([1e-7, -3e-9, 0.1])
    alone = total_of([small]).total
    for other in (np.float32([1e-9] * 3), np.float32([11.0] * 3)):
        moved = total_of([other] * 7 + [small]).total - total_of([other] * 7).total
        np.testing.assert_array_equal(moved, alone)


def test_rounding_takes_at_most_half_a_unit():
    part = np.float32([0.1, -0.2, 1e-6])
    found = total_of([part])
    np.testing.assert_allclose(
        found.value, part.astype(float) / RADIUS, rtol=0, atol=0.6 * batch_unit(32)
    )


@pytest.mark.parametrize("batch_size", [1, 2, 3, 31, 32, 33, 2**16, 2**16 + 7])
def test_the_largest_sums_of_a_batch_fit(batch_size):
    """Of vectors a little longer than the radius, all in one direction."""
    largest = np.float32([RADIUS * batch_size * 1.01])
    assert 2**47 < total_of([largest], batch_size).total[0] <= 2**50


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30, -2000.0])
def test_sums_that_no_bounded_records_have_are_refused(value):
    with pytest.raises(PrivacyError, match="must be finite and of bounded gradients"):
        total_of([np.float32([0.0, 1.0]), np.float32([value, 0.0])])


def test_no_batches_have_a_total_of_zero():
    found = BatchTotal(True, 3, 32, RADIUS).sum()
    np.testing.assert_array_equal(found.value, np.zeros(3))
    assert found.total.dtype == np.int64


def test_without_privacy_totals_are_floats():
    found = total_of([np.float32([1e-30, 5.0])] * 2, private=False)
    assert found.total.dtype == np.float64
    np.testing.assert_allclose(found.value, np.float32([2e-30, 10.0]) / RADIUS)
