"""How many rows a network works on at a time, so that no other changes a row.

Kernels divide a batch among threads, or among the blocks of a GPU, and may round the
rows of one part in another way: attention with a single query on a CPU does, and some
products do with the rows that are left over of fours. A row more moves others to other
slots, and would change their features. Networks that choose an expert for each token,
or leave out what a text is filled up with, multiply as many rows as all texts of a
batch have together: there the other rows themselves would.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .errors import ExtractError, say

# Returns the features of made-up rows, by their numbers, as one batch of n: those below
# n are of one length, others differ from them as much as rows may.
MakeBatch = Callable[[NDArray[np.intp]], NDArray[np.float32]]
_OTHERS = 32  # rows, at least, that each of a small batch stands beside


def find_batch_size(make: MakeBatch, asked: int) -> int:
    """Return the largest power of two, of at most ``asked``, that treats rows alike.

    As many made-up rows stand in several batches: in three orders, half of them beside
    others, and one beside copies of itself. Each must have the same features, bit for
    bit, in all of them; one row at a time is always alone. It says so where fewer are
    taken. ExtractError if even a row alone has other features the second time.
    """
    size = 1 << (asked.bit_length() - 1)  # none is left over of fours
    while not _are_alike(make, size):
        if size == 1:
            raise ExtractError(
                "--model must give a row the same features each time, but this one "
                "draws random numbers, or keeps something of what it saw. Pass another."
            )
        size //= 2
    if size < asked:
        say(
            f"of {asked} rows at a time this network may round some by the others: "
            f"it works on {size}."
        )
    return size


def _are_alike(make: MakeBatch, size: int) -> bool:
    """Return whether made-up rows have the same features in several batches."""
    places, half = np.arange(size), size // 2
    first = _bits(make(places))
    batches = [places[::-1], np.roll(places, half)]
    most = size + max(size, _OTHERS) if half else size  # one has no others
    for others in range(size, most, size):
        batches.append(np.where(places < half, places, others + places))
    batches.append(np.zeros_like(places))  # as the last batch of images is filled up
    for batch in batches:
        known = batch < size
        if not np.array_equal(_bits(make(batch))[known], first[batch[known]]):
            return False
    return True


def _bits(features: NDArray[np.float32]) -> NDArray[np.int32]:
    return np.ascontiguousarray(features).view(np.int32)
