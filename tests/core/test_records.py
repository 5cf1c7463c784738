"""That sums of so many rows are exact, and their rounding within the margin."""

from privfeat.core.grid import GRID_BITS
from privfeat.core.records import CHUNK_ROWS, MAX_ROWS
from privfeat.core.sensitivity import ROUNDING


def test_products_of_a_whole_chunk_add_up_exactly_in_float64():
    assert (2**GRID_BITS) ** 2 * CHUNK_ROWS <= 2**53


def test_the_margin_covers_the_rounding_of_the_largest_sums():
    """Of one sum in each of two neighbours: half a unit in the last place."""
    assert 2 * MAX_ROWS * 2.0**-53 <= ROUNDING
