"""How many rows a network works on at a time, so that each counts alike wherever it is.

Kernels divide a batch among threads, or among the blocks of a GPU, and may round the
rows of one part in another way: attention with a single query on a CPU does. A row more
moves others to other slots, and would change their features.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .errors import say

# Makes features of a batch of so many rows; of two rows, by turns, the second in the
# slots that are marked.
MakeBatch = Callable[[NDArray[np.bool_]], NDArray[np.float32]]


def find_batch_size(make: MakeBatch, asked: int) -> int:
    """Return the largest of ``asked``, its half and so on that treats slots alike.

    Two made-up rows stand in all slots by turns. Each must have the same features, bit
    for bit, in every slot of both batches; one row at a time has one slot. It says so
    where fewer are taken.
    """
    size = asked
    while size > 1 and not _are_alike(make, size):
        size //= 2
    if size < asked:
        say(
            f"this network rounds a row by its place among {asked}: it works on {size} "
            "at a time, which takes longer."
        )
    return size


def _are_alike(make: MakeBatch, size: int) -> bool:
    """Return whether two rows have the same features in all slots of a batch."""
    second = np.arange(size) % 2 == 1
    bits = [
        np.ascontiguousarray(make(marks)).view(np.int32) for marks in (second, ~second)
    ]
    first, other = bits[0][0], bits[1][0]
    expected = np.where(second[:, None], other, first)
    swapped = np.where(second[:, None], first, other)
    return bool(np.all(bits[0] == expected) and np.all(bits[1] == swapped))
