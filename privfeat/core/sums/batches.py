"""Sums of clipped per-record gradients over physical batches, free of rounding.

The engines of networks form every record's clipped gradient in float32, in units in
which its norm is at most ``2**22`` (``1 / UNIT``). `on_grid` rounds its entries to
whole numbers before any two records are added.

*Claim.* The total is the sum over records of whole numbers that depend on the float32
gradient of each record alone. It does not depend on the order of the records, on how
they are dealt into physical batches, devices and processes, nor on what others add.
(That compiled code rounds a record's gradient alike in every slot, whatever the others
hold, is no theorem: each fit tries its own code on public records before it is charged,
and takes smaller batches where it does not: `networks/training/units`. Code for another
size of batches, a public number, may round gradients otherwise, but then for all.)
Hence adding a record moves the total by that record's own whole numbers, and replacing
one by the difference of two such vectors, whatever the number of records and the size
of a batch.

*Proof.* `on_grid` works on every number by itself. Whatever its input, NaN included, it
returns the low 23 bits of a word less ``2**22``: a whole number of at most ``2**22`` in
size. A physical batch, of all devices together, has at most ``LARGEST_BATCH = 2**8``
records (`check_batches`): its sum, and that of any part of it, is at most ``2**30``,
below the ``2**31`` of an int32. `Total` adds int64 without error.

*Length.* A record's whole numbers ``q`` have norm at most ``1 / UNIT``.

*Proof.* Let ``v`` be its float32 vector, of ``p <= MOST_ENTRIES = 2**28`` entries, with
``norm(v) <= (1 - 2**-8) (1 + 2**-10) (1 + 2**-10.8) / UNIT``: the first factor is the
margin of `networks/engine/clipping`, the others are what rounding may take from the
norm and add to ``v`` (see there). Then entries are below ``2**22 - 1``, so that the sum
with ``1.5 * 2**23`` is between ``2**23`` and ``2**24``, where float32 are the whole
numbers: it is rounded to the next one, and its low 23 bits are ``q + 2**22``. An entry
moves by at most 1/2, ``v`` by at most ``sqrt(p) / 2 <= 2**13 = 2**-9 / UNIT``. The norm
of ``q`` is below ``(1 - 2**-8 + 2**-10 + 2**-10.8 + 2**-9) / UNIT``, which is below
``(1 - 2**-12) / UNIT``: there is room for what is of second order.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32, Num

from privfeat.core.sums.totals import ExactSum, Total

UNIT = 2.0**-22
LARGEST_BATCH = 2**8
MOST_ENTRIES = 2**28
_SHIFT = 1.5 * 2.0**23
_LOW_BITS = 2**23 - 1
_ZERO = 2**22


def on_grid(values: Float[Array, "..."]) -> Int32[Array, "..."]:
    """Return each number, at most ``2**22 - 1`` in size, rounded to a whole one.

    Parameters
    ----------
    values : array of float32
        In steps of the grid. Sensitive.

    Returns
    -------
    whole : array of int32
        Next to values of at most ``2**22 - 1`` in size; of others, and NaN, some number
        in ``[-2**22, 2**22)``. Sensitive.

    Examples
    --------
    >>> print(on_grid(jnp.float32([0.4, -0.6, 7.0, -(2.0**22)])))
    [       0       -1        7 -4194304]
    """
    shifted = values.astype(jnp.float32) + jnp.float32(_SHIFT)
    word = jax.lax.bitcast_convert_type(shifted, jnp.int32)
    return jnp.asarray((word & jnp.int32(_LOW_BITS)) - jnp.int32(_ZERO))


def check_batches(n_entries: int, batch_size: int) -> None:
    """Raise unless sums of such batches are proved.

    Parameters
    ----------
    n_entries : int
        Length of a sum. Public.
    batch_size : int
        The most records, or users, of a physical batch on all devices. Public.

    Raises
    ------
    ValueError
        If there are more than ``MOST_ENTRIES``, or ``LARGEST_BATCH``.
    """
    if not 0 <= n_entries <= MOST_ENTRIES:
        raise ValueError(
            f"model must have at most {MOST_ENTRIES} trained parameters, got "
            f"{n_entries}. Freeze some of them."
        )
    if not 1 <= batch_size <= LARGEST_BATCH:
        raise ValueError(
            f"a physical batch must hold 1 to {LARGEST_BATCH} records on all local "
            f"devices, got {batch_size}. Use fewer of them."
        )


class BatchTotal:
    """A running total of batch sums, in units of a radius.

    Parameters
    ----------
    private : bool
        Sums are of whole numbers, from `on_grid`. Without privacy they are floats, in
        units of the statistic.
    n_entries : int
        Length of a sum.
    batch_size : int
        The most records, or users, of a batch on all devices.
    radius : float
        Bound on the norm of what one of them adds. Public.

    Raises
    ------
    ValueError
        As of `check_batches`, with privacy.
    """

    def __init__(
        self, private: bool, n_entries: int, batch_size: int, radius: float
    ) -> None:
        if private:
            check_batches(n_entries, batch_size)
        self._private = private
        self._radius = radius
        self._total = Total(private, (n_entries,))

    def add(self, part: Num[Array, " p"]) -> None:
        """Add the sum of a batch. Sensitive; it stays on its device.

        That it is of at most ``batch_size`` records cannot be seen in it: callers make
        batches of so many slots (`networks/training/loop`).

        Raises
        ------
        TypeError
            If it is not of int32, with privacy: its records were not rounded.
        """
        if self._private and part.dtype != jnp.int32:
            raise TypeError(f"the sum of a batch must be of int32, got {part.dtype}.")
        self._total.add(part)

    def sum(self) -> ExactSum:
        """Return the total of this process."""
        return self._total.sum(UNIT if self._private else 1.0 / self._radius)
