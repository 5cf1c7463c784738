"""The grid of an evaluation: cells of several levels, narrow at both ends."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class UnitGrid:
    """A public grid of numbers in [0, 1], at several levels.

    Edges are ``sin(pi/2 * i/n)**2``: narrow near 0 and 1, where a binary outcome varies
    less and confident classifiers have their probabilities. Of ``sizes``, the numbers
    of cells from coarse to fine, each divides the next.
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
        """Return that of the finest counts that agree, for noise of variance 1."""
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
