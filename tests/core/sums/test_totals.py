from typing import Any

import jax
import numpy as np
import pytest

from privfeat.core.sums.processes import Team
from privfeat.core.sums.statistics import exact_gram
from privfeat.core.sums.totals import ExactSum, Total
from tests.core.grids import STEP, bounded


@pytest.mark.parametrize("on_device", [False, True])
def test_totals_are_exact_beyond_an_int64(on_device):
    """An int64 alone would wrap around, and on the way one more bit would."""
    total = Total(True, (1, 1))
    with jax.enable_x64(True):
        part: Any = np.full((1, 1), 2.0**53)
        part = jax.device_put(part) if on_device else part
    for _ in range(2**12):
        total.add(part)
    assert total.sum(1.0).value == 2.0**65


@pytest.mark.parametrize("chunks_before_carry", [1, 2, 3])
def test_totals_do_not_depend_on_when_they_are_carried(
    grid_rows, plant, chunks_before_carry
):
    rows, labels = bounded(700, 5)
    part = grid_rows(rows, labels, step=STEP, chunk_rows=100)
    expected = exact_gram(part).value
    plant("calls between two carries", chunks_before_carry)
    np.testing.assert_array_equal(exact_gram(part).value, expected)


def test_totals_without_privacy_are_never_carried(grid_rows, plant):
    rows, labels = bounded(700, 5)
    part = grid_rows(rows, labels, step=STEP, chunk_rows=100, private=False)
    expected = exact_gram(part).value
    plant("calls between two carries", 2)
    np.testing.assert_allclose(exact_gram(part).value, expected, rtol=1e-12)


def test_floats_have_no_carry(plant):
    plant("calls between two carries", 2)
    total = Total(False, (1,))
    for _ in range(5):
        total.add(np.full(1, 2.0**60))
    assert total.sum(1.0).value == 5 * 2.0**60


class Twins(Team):
    """Two processes that hold the same."""

    def total(self, values, *_):
        return values + values


@pytest.mark.parametrize("private", [True, False])
def test_sums_are_added_over_all_processes(grid_rows, private):
    """Every sum of twins is twice that of one."""
    rows, labels = bounded(700, 5)
    part = grid_rows(rows, labels, step=STEP, chunk_rows=100, private=private)
    expected = 2.0 * exact_gram(part).value
    found = exact_gram(part).over(Twins(0, 2, "own"), "sum")
    np.testing.assert_array_equal(found.value, expected)


def test_a_scaled_sum_is_the_same_whole_numbers_in_another_unit():
    exact = ExactSum(np.array([3, -5]), 0.25, np.array([1, 0]))
    scaled = exact.scaled(0.7)
    np.testing.assert_array_equal(scaled.total, exact.total)
    np.testing.assert_array_equal(scaled.carry, exact.carry)
    assert scaled.grid_step == 0.7 * 0.25
    np.testing.assert_allclose(scaled.value, 0.7 * exact.value, rtol=1e-15)


def test_a_sum_without_a_unit_is_in_units_of_the_statistic():
    assert ExactSum(np.array([1.5])).value == 1.5


@pytest.mark.parametrize("carry", [None, [2**20, -1]])
def test_sums_beyond_an_int64_are_added_over_all_processes(carry):
    carry = None if carry is None else np.array(carry)
    exact = ExactSum(np.array([2**62, -(2**62)]), 0.5, carry)
    found = exact.over(Twins(0, 2), "sum")
    np.testing.assert_array_equal(found.value, 2.0 * exact.value)
