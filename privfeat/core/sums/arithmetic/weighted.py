"""Weights of classes, and rows that are multiplied by their roots.

What a record contributes may be multiplied by the weight of its class, in ``(0, 1]``:
its clipped gradient, or its row, by the root. The proofs of ``sensitivity`` and
``replacement`` use that contributions are no longer than a bound, rows no longer than
``C``, and that inner products of outer products are not negative. A weight changes none
of that: it makes no coordinate larger. So all bounds are those of the largest weight,
1, attained by records of such a class; two of other classes, of weights ``v`` and
``w``, are at most ``v + w`` times the bound for one apart, and no more than two of that
class. `replacement.row_sum` is of rows without weights alone (`estimation.rows`): two
rows of its proof have one constant, which weights would change.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64

from privfeat.core.sums.arithmetic import gram
from privfeat.core.sums.records import Rows


def checked_weights(weights: Float[np.ndarray, " l"]) -> Float64[np.ndarray, " l"]:
    """Return weights, all in (0, 1]; a ValueError if one is not.

    The bounds of ``sensitivity`` hold for no others.
    """
    weights = np.asarray(weights, np.float64)
    if not np.all((weights > 0.0) & (weights <= 1.0)):
        raise ValueError("weights must be in (0, 1]. Divide them by the largest one.")
    return weights


class WeightedRows:
    """``Rows`` times ``sqrt(w)``, so that a Gram matrix weighs a record by ``w``.

    Parameters
    ----------
    rows : Rows
        Of one label each.
    weights : array of shape (n_labels,)
        In (0, 1]; the last is that of label -1 as well. Public, or released.

    Notes
    -----
    Products are rounded towards zero, to whole numbers of the grid. A root is at most
    1, and so no entry becomes larger, in floating point either: the bounds of `Rows`
    hold. What is made of a row is a product for each entry, alike in every slot.
    """

    def __init__(self, rows: Rows, weights: Float[np.ndarray, " l"]) -> None:
        self.step, self.n_columns, self.sparse = rows.step, rows.n_columns, rows.sparse
        self.users = rows.users
        self._rows, self._roots = rows, np.sqrt(checked_weights(weights))

    def chunks(self) -> Iterator[Any]:
        """Return all records that this process holds, in order."""
        return map(self._weighted, self._rows.chunks())

    def _weighted(self, chunk: Any) -> Any:
        """Return a chunk with its rows times the roots of their weights."""
        root = self._roots[np.asarray(chunk.labels)[:, 0]]
        private = self.step is not None
        if self.sparse:
            matrix = chunk.matrix.copy()
            matrix.data *= np.repeat(root, np.diff(matrix.indptr))
            if private:
                np.trunc(matrix.data, out=matrix.data)
            return replace(chunk, matrix=matrix)
        with jax.enable_x64(True):
            # which multiplies by twice what it gets, in the grid of these rows
            rows = gram.weighted_rows(chunk.rows, root / 2.0, private)
            return replace(chunk, rows=rows.astype(jnp.float32))
