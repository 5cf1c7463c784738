"""Sums of batches: whole numbers, whatever the order, the parts and the values."""

from fractions import Fraction

import hypothesis.extra.numpy as arrays_of
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfeat.core.sums.batches import (
    LARGEST_BATCH,
    MOST_ENTRIES,
    UNIT,
    BatchTotal,
    check_batches,
    on_grid,
)
from privfeat.networks.engine.clipping import MARGIN

LARGEST = 2.0**22 - 1.0


def total_of(parts, private=True, radius=0.37):
    total = BatchTotal(private, len(parts[0]), 32, radius)
    for part in parts:
        total.add(jnp.asarray(part))
    return total.sum()


@given(arrays_of.arrays(np.float32, 5, elements=st.floats(-LARGEST, LARGEST, width=32)))
def test_numbers_are_rounded_to_the_next_whole_one(values):
    """Python's fractions are the reference: halves go to the even number."""
    found = on_grid(jnp.asarray(values))
    assert found.dtype == jnp.int32
    assert found.tolist() == [round(Fraction(float(value))) for value in values]


@given(arrays_of.arrays(np.float32, 9, elements=st.floats(width=32)))
def test_no_number_becomes_larger_than_a_batch_has_room_for(values):
    """Not that of NaN, infinity or what a wrong norm would leave unbounded."""
    worst = np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38, 2.0**22, -(2.0**22)])
    found = np.asarray(on_grid(jnp.asarray(np.append(values, worst))), np.int64)
    assert np.abs(found).max() <= 2**22
    assert LARGEST_BATCH * 2**22 < 2**31


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_largest_batch_fits(sign):
    """Of the longest vectors, all in one direction."""
    entries = on_grid(jnp.full((LARGEST_BATCH, 1), sign * LARGEST, jnp.float32))
    found = total_of([jnp.sum(entries, axis=0, dtype=jnp.int32)] * 3)
    assert found.total[0] == 3 * LARGEST_BATCH * int(sign) * (2**22 - 1)


@pytest.mark.parametrize("n_entries", [1, 3, 2**10, 2**20])
def test_rounding_makes_no_vector_longer_than_the_radius(n_entries):
    """Each entry just above a half, where it grows most; and as long as it may be."""
    longest = (1.0 - MARGIN) * (1.0 + 2.0**-10) * (1.0 + 2.0**-10.8) / UNIT
    level = np.float32(max(longest / np.sqrt(n_entries), 0.5))
    for value in (level, np.floor(level) + np.float32(0.51), np.float32(0.51)):
        values = np.full(n_entries, min(value, level + 0.5), np.float32)
        own = min(1.0, longest / np.linalg.norm(values.astype(np.float64)))
        whole = np.asarray(on_grid(jnp.asarray(values * np.float32(own))), np.float64)
        assert np.linalg.norm(whole) <= 1.0 / UNIT


def test_margins_cover_the_rounding_of_the_most_entries():
    """The sum of the proof."""
    longest = (1.0 - MARGIN) * (1.0 + 2.0**-10) * (1.0 + 2.0**-10.8)
    assert longest + np.sqrt(MOST_ENTRIES) / 2.0 * UNIT < 1.0


def test_adding_a_batch_moves_the_total_by_its_own_numbers_alone():
    small, large = np.int32([1, -3, 2**20]), np.int32([2**30] * 3)
    for order in ([large] * 7 + [small], [small] + [large] * 7):
        moved = total_of(order).total - total_of([large] * 7).total
        np.testing.assert_array_equal(moved, small)


def test_totals_are_in_units_of_the_radius():
    found = total_of([np.int32([2**22, -(2**21), 1])])
    np.testing.assert_array_equal(found.value, [1.0, -0.5, 2.0**-22])


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.int8])
def test_what_was_not_rounded_is_refused(dtype):
    with pytest.raises(TypeError, match="must be of int32"):
        total_of([jnp.ones(2, dtype)])


@pytest.mark.parametrize("n_entries", [-1, MOST_ENTRIES + 1])
def test_more_entries_than_are_proved_are_refused(n_entries):
    check_batches(MOST_ENTRIES, 1)
    check_batches(0, 1)
    with pytest.raises(ValueError, match="model must have at most 268435456"):
        check_batches(n_entries, 32)


@pytest.mark.parametrize("batch_size", [0, LARGEST_BATCH + 1])
def test_larger_batches_than_are_proved_are_refused(batch_size):
    check_batches(3, LARGEST_BATCH)
    with pytest.raises(ValueError, match="must hold 1 to 256 records"):
        BatchTotal(True, 3, batch_size, 1.0)


def test_no_batches_have_a_total_of_zero():
    found = BatchTotal(True, 3, 32, 0.37).sum()
    np.testing.assert_array_equal(found.value, np.zeros(3))
    assert found.total.dtype == np.int64


def test_without_privacy_totals_are_floats():
    found = total_of([np.float32([1e-30, 5.0])] * 2, private=False)
    assert found.total.dtype == np.float64
    np.testing.assert_allclose(found.value, np.float32([2e-30, 10.0]) / 0.37)
