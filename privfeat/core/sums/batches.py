"""Totals of sums over batches that are computed in float32, free of further rounding.

The engines of networks sum the clipped gradients of a physical batch in float32. How
that rounds depends on the batch; what is done with its sum does not:

*Claim.* The total is the sum over the batches of a function of each batch alone. It
does not depend on their order, nor on the devices and processes that sum them.

*Proof.* `BatchTotal` multiplies the sum of a batch by a public number, in float64, and
rounds each entry to a whole number. It does so for every batch by itself. A batch of
``m < 2**b`` vectors of norm at most 2, in units of the radius, has a sum of norm below
``2**(b + 1)``, hence entries of at most ``2**50`` in units of ``2**(b - 49)``. Larger
ones, and NaN, are refused. `Total` adds whole numbers up to ``2**50`` without error.

An entry is rounded by at most half a unit: ``2**-44`` of the radius for batches of 32.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float64

from privfeat.core.sums.totals import ExactSum, Total
from privfeat.exceptions import PrivacyError

_LARGEST = 2.0**50


class BatchTotal:
    """A running total of batch sums, in units of a radius.

    Parameters
    ----------
    private : bool
        Without privacy nothing is rounded to a grid, and totals are of float64.
    n_entries : int
        Length of a sum.
    batch_size : int
        The most records, or users, of a batch.
    radius : float
        Bound on the norm of what one of them adds. Public.
    """

    def __init__(
        self, private: bool, n_entries: int, batch_size: int, radius: float
    ) -> None:
        self._private = private
        self._unit = batch_unit(batch_size) if private else 1.0
        self._scale = 1.0 / (radius * self._unit)
        self._total = Total(private, (n_entries,))
        self._largest: list[Float64[Array, ""]] = []

    def add(self, part: Float[Array, " p"]) -> None:
        """Add the sum of a batch. Sensitive; it stays on its device."""
        with jax.enable_x64(True):
            found, largest = _scaled(part, self._scale, rounded=self._private)
        self._total.add(found)
        self._largest.append(largest)

    def sum(self) -> ExactSum:
        """Return the total of this process.

        Raises
        ------
        PrivacyError
            If a batch sum was not finite, or larger than its records can make it.
        """
        if self._private and not all(float(each) <= _LARGEST for each in self._largest):
            raise PrivacyError(
                "the sum of a batch must be finite and of bounded gradients, got "
                "another. Nothing was released of it."
            )
        return self._total.sum(self._unit)


def batch_unit(batch_size: int) -> float:
    """Return the grid of the sums of batches of so many records, in radii.

    Examples
    --------
    >>> batch_unit(1) == 2.0**-48, batch_unit(32) == 2.0**-43
    (True, True)
    """
    return math.ldexp(1.0, batch_size.bit_length() - 49)


@partial(jax.jit, static_argnames="rounded")
def _scaled(
    part: Float[Array, " p"], scale: Float64[Array, ""] | float, *, rounded: bool
) -> tuple[Float64[Array, " p"], Float64[Array, ""]]:
    """Return a batch sum times ``scale``, and its largest entry."""
    found = part.astype(jnp.float64) * scale
    found = jnp.rint(found) if rounded else found
    return found, jnp.max(jnp.abs(found))
