"""Counts at several levels, from coarse to fine, made to agree after their noise.

A table of many cells has much noise in the sums of its cells. So sums are released as
well, as counts of coarser levels: every record is in one cell of each. Least squares
then finds the counts that agree with all levels best [1]_. It is post-processing.

References
----------
.. [1] Hay, Rastogi, Miklau & Suciu. Boosting the Accuracy of Differentially Private
   Histograms Through Consistency. VLDB 2010. Section 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def agreed(
    counts: Sequence[Floats], variances: Sequence[float]
) -> tuple[list[Floats], list[float]]:
    """Return the least-squares counts of each level, and the variances of their noise.

    Parameters
    ----------
    counts : sequence of arrays
        Noisy counts, from coarse to fine. The cells of a level are parts of those of
        the level above: equally many of each, next to each other.
    variances : sequence of float
        Of the noise of one count of each level, which is independent; in any unit.

    Notes
    -----
    The two passes of [1]_: upwards, a count is averaged with the sum of its parts, by
    inverse variance; downwards, what a count differs from the sum of its parts by is
    shared out among them. A part less the mean of its siblings is not correlated with
    anything else, hence the variances of the second pass.
    """
    best, known = [np.asarray(level, np.float64) for level in counts], [*variances]
    parts = [len(fine) // len(best[at]) for at, fine in enumerate(best[1:])]
    for at in reversed(range(len(parts))):
        below = parts[at] * known[at + 1]
        sums = best[at + 1].reshape(-1, parts[at]).sum(axis=1)
        share = below / (known[at] + below)
        best[at] = share * best[at] + (1.0 - share) * sums
        known[at] *= share
    for at, n_parts in enumerate(parts):
        missing = best[at] - best[at + 1].reshape(-1, n_parts).sum(axis=1)
        best[at + 1] = best[at + 1] + np.repeat(missing / n_parts, n_parts)
        own = known[at + 1] * (1.0 - 1.0 / n_parts)
        known[at + 1] = own + known[at] / n_parts**2
    return best, known


@dataclass(frozen=True)
class UnitGrid:
    """A public grid of numbers in [0, 1], at several levels.

    Edges are ``sin(pi/2 * i/n)**2``: narrow near 0 and 1, where a binary outcome varies
    less and confident classifiers have their probabilities.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of cells, from coarse to fine; each divides the next.
    """

    sizes: tuple[int, ...] = (4, 16, 64)

    @property
    def edges(self) -> Floats:
        """Ends of the cells of the finest level, (n + 1,), from 0 to 1."""
        return edges_of(self.sizes[-1])

    @property
    def middles(self) -> Floats:
        """Middles of these cells, (n,)."""
        return 0.5 * (self.edges[1:] + self.edges[:-1])

    def cells(self, values: ArrayLike) -> NDArray[np.intp]:
        """Return the cell of each number: cell ``i`` holds those in ``(e_i, e_i+1]``.

        Numbers outside of [0, 1] are in the first or the last one, NaN in the last.
        """
        return np.searchsorted(self.edges[1:-1], values, side="left")

    def at_all_levels(self, cells: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the cells of every level that hold these of the finest one."""
        return np.stack([cells * size // self.sizes[-1] for size in self.sizes])

    def noise_covariance(self) -> Floats:
        """Return the covariance of `agreed` finest counts, for noise of variance 1."""
        return _covariance(self.sizes)


def edges_of(n_cells: int) -> Floats:
    """Return the edges of a grid of so many cells."""
    edges = np.sin(0.5 * np.pi * np.arange(n_cells + 1) / n_cells) ** 2
    edges[-1] = 1.0
    return np.asarray(edges)


@lru_cache(maxsize=4)
def _covariance(sizes: tuple[int, ...]) -> Floats:
    cells = np.arange(sizes[-1])
    precision = sum(
        np.equal.outer(cells * size // sizes[-1], cells * size // sizes[-1]).astype(
            np.float64
        )
        for size in sizes
    )
    covariance = np.linalg.inv(precision)
    covariance.setflags(write=False)
    return np.asarray(covariance)
