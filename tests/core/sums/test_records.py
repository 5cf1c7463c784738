"""That sums of so many rows are exact, and their rounding within the margin."""

import numpy as np
import pytest

from privfeat.core.bounds.grid import GRID_BITS
from privfeat.core.bounds.sensitivity import ROUNDING
from privfeat.core.sums.records import CHUNK_ROWS, MAX_ROWS, full_chunks


def test_products_of_a_whole_chunk_add_up_exactly_in_float64():
    assert (2**GRID_BITS) ** 2 * CHUNK_ROWS <= 2**53


def test_the_margin_covers_the_rounding_of_the_largest_sums():
    """Of one sum in each of two neighbours: half a unit in the last place."""
    assert 2 * MAX_ROWS * 2.0**-53 <= ROUNDING


@pytest.mark.parametrize("n_rows", [0, 1, CHUNK_ROWS, CHUNK_ROWS + 1])
def test_full_chunks_hold_all_rows_and_zeros(n_rows):
    rows = np.arange(1, 2 * n_rows + 1, dtype=np.float32).reshape(n_rows, 2)
    chunks = list(full_chunks(rows))
    assert all(chunk.shape == (CHUNK_ROWS, 2) for chunk in chunks)
    together = np.concatenate([*chunks, np.zeros((1, 2), np.float32)])
    assert together.dtype == np.float32
    np.testing.assert_array_equal(together[:n_rows], rows)
    assert not together[n_rows:].any()
    assert len(chunks) == -(-n_rows // CHUNK_ROWS)


def test_rows_come_alone_in_the_same_number_of_slots():
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    alone = list(full_chunks(rows, alone=True))
    assert [each.shape for each in alone] == [(1, 2)] * CHUNK_ROWS
    np.testing.assert_array_equal(np.concatenate(alone), next(full_chunks(rows)))
