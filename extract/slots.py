"""How many rows a network works on at a time, so that each counts alike wherever it is.

Kernels divide a batch among threads, or among the blocks of a GPU, and may round the
rows of one part in another way: attention with a single query on a CPU does, and some
products do with the rows that are left over of fours. A row more moves others to other
slots, and would change their features.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .errors import say

# Returns the features of made-up rows, by their numbers, as one batch.
MakeBatch = Callable[[NDArray[np.intp]], NDArray[np.float32]]


def find_batch_size(make: MakeBatch, asked: int) -> int:
    """Return the largest power of two, of at most ``asked``, that treats slots alike.

    As many made-up rows stand in three orders: as they are, from the last to the first,
    and with the halves exchanged. Each must have the same features, bit for bit, in all
    of them; one row at a time has one slot. It says so where fewer are taken.
    """
    size = 1 << (asked.bit_length() - 1)  # none is left over of fours
    while size > 1 and not _are_alike(make, size):
        size //= 2
    if size < asked:
        say(
            f"of {asked} rows at a time this network may round some by their place: "
            f"it works on {size}."
        )
    return size


def _are_alike(make: MakeBatch, size: int) -> bool:
    """Return whether made-up rows have the same features in three orders of a batch."""
    places = np.arange(size)
    first = _bits(make(places))
    return all(
        np.array_equal(_bits(make(order)), first[order])
        for order in (places[::-1], np.roll(places, size // 2))
    )


def _bits(features: NDArray[np.float32]) -> NDArray[np.int32]:
    return np.ascontiguousarray(features).view(np.int32)
