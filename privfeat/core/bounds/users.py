"""Bounds on what all records of a user add to a sum together, however many they are.

A record adds ``a x^T`` to a sum: its row ``x`` times a vector ``a``: a residual, an
indicator of labels, or the row itself. All are in steps of the grids, ``norm(a) norm(x)
<= L`` is the bound for one record, and a user has at most ``M`` records. Their sum ``S
= sum_i a_i x_i^T`` has

    ``norm(S)^2 = sum_ij (a_i . a_j) (x_i . x_j)``,

so it is scaled down to ``L`` by one factor, and no matrix of a user is formed. Records
of a user stand in one block of slots, at whatever place; -1 is the user of empty ones.
"""

import math
from typing import Any

import numpy as np
from jaxtyping import Array, Float64, Int

from privfeat.core.bounds.clipping import SHRINK
from privfeat.core.bounds.user_clips import SumClip


def inner_products(
    values: Float64[Array | np.ndarray, "n p"], block: int
) -> Float64[Any, "q b b"]:
    """Return the inner products of any two rows of each block, of whole numbers.

    Exact where the norms of rows have products of at most ``2**53``, by Cauchy and
    Schwarz. On accelerators by sums, not by matrix products: where a fit multiplies
    8-bit numbers, ``devices`` has not tried products of float64.
    """
    parts = values.astype(np.float64).reshape(-1, block, values.shape[1])
    if isinstance(parts, np.ndarray):
        return np.asarray(parts @ parts.mT)
    return (parts[:, :, None, :] * parts[:, None, :, :]).sum(axis=-1)


def user_factors(
    left: Float64[Array | np.ndarray, "q b b"],
    right: Float64[Array | np.ndarray, "q b b"],
    users: Int[Array | np.ndarray, " n"],
    clip: SumClip,
) -> Float64[Any, " n"]:
    """Return the factor in [0, 1] by which each record's part of a sum is multiplied.

    Parameters
    ----------
    left, right : arrays of shape (n_blocks, block, block)
        `inner_products` of the vectors ``a`` and of the rows ``x``. Sensitive.
    users : int array of shape (n,)
        The user of each slot, -1 for none. Sensitive.
    clip : SumClip
        Public.

    Returns
    -------
    factors : array of shape (n,), float64
        ``f <= 1``, the same for all records of a user. Still sensitive.

    Notes
    -----
    **Guarantee.** ``f norm(S) + slack <= L (1 - 2**-38)`` or ``f = 1`` and ``norm(S) +
    slack <= L``, as real numbers, and ``f`` depends on the user's own records alone:
    not on their place, nor on who else is there. So a clipped user's sum lies in the
    ball of one record, and sums of positive semidefinite matrices have no negative
    inner products either (``acute``). Hence the sensitivity for one record, as
    ``sensitivity`` has it, holds for all records of a user, of any number, under either
    adjacency. What ``replacement`` says of pairs does not, but for `row_sum`: a stack
    is no sum of `CLIPPED_SUMS`, and is bounded by the number of records.

    **Proof.** Each ``abs((a_i . a_j) (x_i . x_j)) <= L^2``. Divided by a power of two
    it is at most ``2**32``, rounded by a relative ``2**-53`` there; its floor plus 2 is
    a whole number no less than it. At most ``512**2`` of these add up to less than
    ``2**53``: exactly, in any order, so at any place. Their sum is no less than
    ``norm(S)^2``, and more by at most ``2**-29 M^2 L^2``. Quotient and root take a
    relative ``2**-51``, less than the margin of ``2**-36``.

    **Source.** Norms of sums without the sums: Goodfellow 2015 (arXiv:1510.01799), for
    the records of a user instead of one. Clipping of a user's sum: McMahan et al. 2018
    (arXiv:1710.06963).
    """
    xp = left.__array_namespace__()
    step = math.ldexp(1.0, 2 * math.frexp(clip.limit)[1] - 32)
    of_slots = users.reshape(-1, clip.block)
    same = of_slots[:, :, None] == of_slots[:, None, :]
    pairs = xp.where(same, xp.floor(left * right * (1.0 / step)) + 2.0, 0.0)
    # of each record with all of its user, then of all of its user
    of_records = xp.sum(pairs, axis=2)[:, None, :]
    squares = xp.sum(xp.where(same, of_records, 0.0), axis=2).reshape(-1)
    norms = xp.sqrt(xp.maximum(squares, 1.0) * step)
    factors: Float64[Any, " n"] = xp.minimum(
        1.0, (clip.limit - clip.slack) * SHRINK / norms
    )
    return factors


def clip_users(
    left: Float64[Array | np.ndarray, "n p"],
    right: Float64[Array | np.ndarray, "q b b"],
    users: Int[Array | np.ndarray, " n"],
    clip: SumClip,
) -> Float64[Any, "n p"]:
    """Return vectors ``a`` times `user_factors`, scaled, rounded towards zero."""
    xp = left.__array_namespace__()
    factors = user_factors(inner_products(left, clip.block), right, users, clip)
    clipped: Float64[Any, "n p"] = xp.trunc(left * (factors * clip.scale)[:, None])
    return clipped


def clip_users_rows(
    rows: Float64[Array | np.ndarray, "n c"],
    users: Int[Array | np.ndarray, " n"],
    clip: SumClip,
) -> Float64[Any, "n c"]:
    """Return rows whose outer products sum to no more than ``L`` over a user."""
    xp, products = rows.__array_namespace__(), inner_products(rows, clip.block)
    factors = xp.sqrt(user_factors(products, products, users, clip))
    clipped: Float64[Any, "n c"] = xp.trunc(rows * factors[:, None])
    return clipped
