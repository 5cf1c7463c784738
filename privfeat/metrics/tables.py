"""The sums over test records that an evaluation releases, with their queries.

What a record adds depends on its label and its prediction alone. Everything else that
an evaluation says is made of the releases of these sums, and of public facts.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfeat._types import Adjacency
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import replacement
from privfeat.core.sums.confidence import exact_box_sums, exact_level_counts
from privfeat.core.sums.totals import ExactSum


@dataclass(frozen=True)
class UnitGrid:
    """A public grid of numbers in [0, 1], at several levels.

    Edges are ``sin(pi/2 * i/n)**2``: narrow near 0 and 1, where a binary outcome varies
    less and confident classifiers have their probabilities. Of ``sizes``, the numbers
    of cells from coarse to fine, each divides the next.
    """

    sizes: tuple[int, ...] = (4, 16, 64)

    @property
    def edges(self) -> NDArray[np.float64]:
        """Ends of the cells of the finest level, (n + 1,), from 0 to 1."""
        n_cells = self.sizes[-1]
        edges = np.sin(0.5 * np.pi * np.arange(n_cells + 1) / n_cells) ** 2
        edges[-1] = 1.0
        return np.asarray(edges)

    @property
    def middles(self) -> NDArray[np.float64]:
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

    def noise_covariance(self) -> NDArray[np.float64]:
        """Return that of the finest counts that agree, for noise of variance 1."""
        return _covariance(self.sizes)


@lru_cache(maxsize=4)
def _covariance(sizes: tuple[int, ...]) -> NDArray[np.float64]:
    levels = UnitGrid(sizes).at_all_levels(np.arange(sizes[-1]))
    precision = sum(np.equal.outer(cells, cells).astype(float) for cells in levels)
    covariance = np.linalg.inv(precision)
    covariance.setflags(write=False)
    return np.asarray(covariance)


GRID = UnitGrid()
# A curve has more noise to bear than an accuracy.
SCORES_WEIGHT = 3.0
# Of a target ``t`` and an error ``e``, in parts of the range of targets, with ``t``
# from its middle: what each record adds, within what bounds. Factors below 1 leave more
# of the sensitivity to squared errors, which have most noise to bear.
ERROR_BOX = (
    (0.0, 0.5),  # 1 / 2
    (0.0, 0.5),  # |e| / 2
    (0.0, 1.0),  # e^2
    (0.0, 0.25),  # e^4 / 4
    (-0.5, 0.5),  # t
    (0.0, 0.25),  # t^2
    (-0.125, 0.125),  # t^3
    (0.0, 0.0625),  # t^4
)
ERROR_FACTORS = (0.5, 0.5, 1.0, 0.25, 1.0, 1.0, 1.0, 1.0)


def outcome_sizes(n_classes: int) -> tuple[int, ...]:
    """Return how many cells there are: right or not, by class, by predicted class."""
    return (2, 2 * n_classes, n_classes**2)


def outcomes_query(adjacency: Adjacency) -> Query:
    """Return the query of `exact_outcomes`: a record is in one cell of each level."""
    return Query("outcomes", replacement.level_counts(3, adjacency))


def exact_outcomes(
    codes: NDArray[np.intp],
    predicted: NDArray[np.intp],
    n_classes: int,
    counted: NDArray[np.bool_],
) -> ExactSum:
    """Return numbers of records at three levels, of those that are ``counted``.

    Which of them are right and wrong; the same for each class, (n_classes, 2) by row;
    and which class was predicted for which, (n_classes, n_classes) by row. ``codes``
    and ``predicted`` are in [0, n_classes).
    """
    wrong = (codes != predicted).astype(np.intp)
    cells = np.stack([wrong, 2 * codes + wrong, n_classes * codes + predicted])
    return exact_level_counts(cells, counted, outcome_sizes(n_classes))


def scores_query(adjacency: Adjacency, grid: UnitGrid = GRID) -> Query:
    """Return the query of `exact_scores`."""
    bound = replacement.level_counts(len(grid.sizes), adjacency)
    return Query("scores", bound, weight=SCORES_WEIGHT)


def exact_scores(
    sides: NDArray[np.intp],
    scores: NDArray[np.float64],
    counted: NDArray[np.bool_],
    grid: UnitGrid = GRID,
) -> ExactSum:
    """Return a histogram of scores for each of two sides, at all levels of the grid.

    ``sides`` are 0 or 1: the class of the record, or whether its prediction is right.
    ``scores`` are in [0, 1]; only the records that are ``counted`` count.
    """
    sizes = np.array(grid.sizes)[:, None]
    cells = grid.at_all_levels(grid.cells(scores)) + sides * sizes
    return exact_level_counts(cells, counted, tuple(2 * size for size in grid.sizes))


def errors_query(adjacency: Adjacency) -> Query:
    """Return the query of `exact_errors`."""
    return Query("errors", replacement.box_sums(ERROR_BOX, adjacency))


def exact_errors(
    targets: NDArray[np.float64],
    predicted: NDArray[np.float64],
    bounds: tuple[float, float],
    counted: NDArray[np.bool_],
) -> ExactSum:
    """Return sums of powers of targets and errors, both cut to ``bounds``.

    Times `ERROR_FACTORS`, within `ERROR_BOX`.
    """
    low, high = bounds
    t, p = (
        (values.clip(low, high) - low) / (high - low) - 0.5
        for values in (targets, predicted)
    )
    error = np.abs(t - p)
    values = np.stack(
        [np.ones_like(t), error, error**2, error**4, t, t**2, t**3, t**4], axis=1
    )
    return exact_box_sums(values * ERROR_FACTORS, counted, ERROR_BOX)
