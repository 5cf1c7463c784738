"""Trials of the products of a device, on numbers that are hard to multiply."""

import math
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jaxtyping import Float64, Num, UInt64

from privfeat.core.bounds.grid import COEF_BITS, GRID_BITS
from privfeat.core.sums.arithmetic import gram, slices
from privfeat.core.sums.calls import rows_of_call
from privfeat.core.sums.statistics import arithmetic
from privfeat.core.sums.totals import in_order

# NumPy multiplies by a vector, by a few vectors, and by many, in different code.
_N_OUTPUTS = (1, 4, 128)


@lru_cache(maxsize=256)
def products_are_exact(device: jax.Device, sliced: bool) -> bool:
    """Return whether all products of a call are right, of numbers hard to multiply."""
    rows, narrow, coef = hard_numbers()
    on_cpu, short = jax.default_backend() == "cpu", np.floor(rows / 32.0)
    tall = hard_rows(gram.most_rows(1)) if on_cpu else rows
    products_of = arithmetic().products_of
    options = () if on_cpu else (sliced,)
    with jax.default_device(device):
        right = [_is_product(gram.gram_of(tall, sliced), tall.T, tall)]
        placed = jax.device_put(rows.astype(np.float32), device)
        calls = [(placed, narrow[:, :m], coef[:m], *options) for m in _N_OUTPUTS]
        for call, (sums, scores) in zip(
            calls, in_order(products_of, calls), strict=True
        ):
            right += [_is_product(sums, call[1].T, rows)]
            right += [_is_product(scores, short, call[2].T)]
        return all(right) and (not sliced or longest_sums_hold())


def _is_product(
    found: Num[Any, "p q"],
    left: Float64[np.ndarray, "p k"],
    right: Float64[np.ndarray, "k q"],
) -> bool:
    """Return whether numbers are the product of whole ones, all within ``2**53``.

    By what it does to vectors, modulo ``2**64``: an integer product takes a second.
    """
    vectors = _bits(right.shape[1], 4).view(np.int64)
    expected = left.astype(np.int64) @ (right.astype(np.int64) @ vectors)
    whole = np.asarray(found)
    return bool(
        np.all(whole == np.trunc(whole))
        and np.array_equal(whole.astype(np.int64) @ vectors, expected)
    )


def hard_numbers() -> tuple[Float64[np.ndarray, "..."], ...]:
    """Return whole rows of a call, residuals and coefficients, as large as allowed.

    Sums of the first column reach ``2**53`` in the largest calls. Coefficients of a
    norm of at most ``2**32`` keep sums of the scores of ``rows / 32`` within ``2**52``;
    one of 32 bits stands alone.
    """
    rows = hard_rows(rows_of_call(1))
    bits = _bits(*rows.shape)[: _N_OUTPUTS[-1]]
    largest = 2**COEF_BITS >> math.ceil(math.log2(rows.shape[1]) / 2)
    coef = ((bits >> 20) % largest | 1).astype(np.float64)
    coef[1], coef[2] = largest, np.arange(rows.shape[1]) == 0
    coef[2] *= 2.0**COEF_BITS - 1.0
    # odd numbers first, for a single output
    narrow = rows[:, [1, 0, *range(2, len(coef))]]
    return rows, narrow, coef * (1.0 - 2.0 * (bits[::-1] >> 63))


def hard_rows(n_rows: int) -> Float64[np.ndarray, "b c"]:
    """Return ``2**20`` whole numbers of 20 bits, in so many rows.

    Rows of odd numbers alternate with rows of 1 and -1: what scales them together loses
    bits. Squares of the first column sum to ``2**40 n_rows``.
    """
    bits = _bits(n_rows, 2**20 // n_rows)
    rows = ((bits % 2**GRID_BITS) | 1).astype(np.float64)
    rows[1::2] = 1.0
    rows *= 1.0 - 2.0 * (bits >> 63)
    rows[:, 0], rows[:, 1] = 2.0**GRID_BITS, 2.0**GRID_BITS - 1.0
    return np.asarray(rows)


def longest_sums_hold() -> bool:
    """Return whether int32 holds the longest sums of digits, the largest among them.

    An accelerator that sums in float32 would lose what is beyond ``2**24``.
    """
    digits = (64 - _bits(4, 3 * slices.LONGEST) % 4).astype(np.int8)
    digits[0] = 64
    digits[2], digits[3, ::2] = -digits[2], -digits[3, ::2]
    found = np.asarray(jax.jit(slices.digit_sums)(digits, digits))
    return np.array_equal(found, digits.astype(np.int64) @ digits.T.astype(np.int64))


def _bits(n_rows: int, n_columns: int) -> UInt64[np.ndarray, "p q"]:
    """Return fixed bits without a pattern that sums would share."""
    numbers: UInt64[np.ndarray, " n"] = np.arange(n_rows * n_columns, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers ^= numbers >> np.uint64(shift)  # as SplitMix64 mixes a counter
        numbers *= np.uint64(factor)
    numbers ^= numbers >> np.uint64(31)
    return numbers.reshape(n_rows, n_columns)
