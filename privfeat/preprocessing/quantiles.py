"""DPQuantiles: many quantiles of every column from one noisy release."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.isotonic import isotonic_regression

from privfeat._checks import check_between, check_int
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import replacement
from privfeat.core.noise.gaussian_mechanism import GaussianMechanism
from privfeat.core.sums.confidence import BOX_STEP, exact_level_counts
from privfeat.core.sums.totals import ExactSum
from privfeat.estimation.bases import with_params_of_fit
from privfeat.preprocessing.private import (
    Floats,
    PrivateTransformer,
    column_bounds,
    document,
    placed,
)
from privfeat.solvers.levels import agreed
from privfeat.solvers.spectrum import check_release_cost

# A cell is four of the next level.
_PARTS = 4


@document
class DPQuantiles(OneToOneFeatureMixin, PrivateTransformer):
    """Quantiles of columns, and their ranks as features, found privately.

    Parameters
    ----------
    quantiles : sequence of float, default=(0.25, 0.5, 0.75)
        Which, each in [0, 1]. Default: quartiles, as any others follow from the release
        as well, at no cost.
    bounds : (low, high), default=(-1, 1)
        The least and the greatest value of each column, **public**: two numbers, or two
        arrays of shape (n_features,). Values outside are cut to them. Default: (-1, 1),
        as `PublicColumns` makes columns.
    n_levels : int, default=4
        The bounds are cut into ``4**n_levels`` cells of equal width; in [1, 6].
        Default: 4, as a convention; others were not measured.
    {budget}

    Attributes
    ----------
    quantiles_ : array of shape (n_quantiles, n_features)
        In the units of the columns.
    cdf_ : array of shape (n_features, n_cells + 1)
        Part of the records up to each edge of the cells: from 0 to 1, never falling.
    {attributes}

    Notes
    -----
    **Guarantee.** One release, ``levels``: the numbers of records in the cells of each
    of ``L = n_levels`` levels, of 4, 16, ... cells, of each of ``d`` columns. A record
    is in one cell of each: sensitivity ``sqrt(L d)``, and ``sqrt(2 L d)`` under
    replace-one (`privfeat.core.bounds.replacement.level_counts`); with ``groups``
    ``max_group_size`` times that. The counts of all levels are made to agree by least
    squares [1]_ and then to rise, which costs nothing.

    **Error.** The number of records up to an edge is a sum of at most three counts of
    each level. Least squares is no worse than this sum, so the noise of a rank, before
    it is made to rise, has a standard deviation of at most ``sqrt(3 L)`` times that of
    a count: ``noise_multiplier * L * sqrt(3 d)`` records, about 26 for one column at
    epsilon 1 and the default levels. A quantile is further off by at most the width of
    a cell.

    **Public.** ``bounds``, the number and names of columns, that all values are finite,
    all parameters but ``random_state``; under replace-one the number of records.

    {unprotected}

    References
    ----------
    .. [1] Hay, Rastogi, Miklau & Suciu. Boosting the Accuracy of Differentially Private
       Histograms Through Consistency. VLDB 2010. Section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from privfeat.preprocessing import DPQuantiles
    >>> X = np.random.default_rng(0).uniform(0, 100, size=(20_000, 1))
    >>> found = DPQuantiles(quantiles=[0.1, 0.5], bounds=(0, 200), epsilon=1)
    >>> found.fit(X).quantiles_.round(-1).tolist()
    [[10.0], [50.0]]
    """

    quantiles: Sequence[float] = (0.25, 0.5, 0.75)
    bounds: Any = (-1.0, 1.0)
    n_levels: int = 4

    _learned: ClassVar[tuple[str, ...]] = ("quantiles_", "cdf_")

    @with_params_of_fit
    def transform(self, X: ArrayLike) -> Floats:
        """Return the rank of each value: the part of the records up to it, in [0, 1].

        Within a cell it grows evenly. Shape (n_samples, n_features).

        Raises
        ------
        NotFittedError, TypeError, ValueError
            As `DPStandardScaler.transform`.
        """
        rows = self._rows(X, reset=False)
        edges = self._edges(rows.shape[1])
        columns = zip(rows.T, edges, self.cdf_, strict=True)
        return np.stack([np.interp(*column) for column in columns], axis=1)

    @with_params_of_fit
    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Return the values of these ranks, (n_samples, n_features).

        Raises
        ------
        NotFittedError, TypeError, ValueError
            As `transform`.
        """
        ranks = self._outputs(X, self.n_features_in_)
        return self._values(ranks)

    def _values(self, ranks: Floats) -> Floats:
        """Return the values of ranks, by column: (n, n_features)."""
        edges = self._edges(ranks.shape[1])
        columns = zip(ranks.T, self.cdf_, edges, strict=True)
        return np.stack([_inverse(*column) for column in columns], axis=1)

    def _edges(self, n_features: int) -> Floats:
        """Return the edges of the cells of each column, (n_features, n_cells + 1)."""
        low, high = column_bounds(self.bounds, n_features)
        return np.linspace(low, high, self._sizes()[-1] + 1, axis=1)

    def _ranks(self) -> Floats:
        """Return the wanted quantiles as an array, (n_quantiles,)."""
        if np.ndim(self.quantiles) != 1:
            raise ValueError("quantiles must be a list of numbers in [0, 1].")
        ranks = [
            check_between(f"quantiles[{place}]", quantile, -1e-300, 1.0 + 1e-15)
            for place, quantile in enumerate(self.quantiles)
        ]
        return np.array(ranks)

    def _sizes(self) -> list[int]:
        n_levels = check_int("n_levels", self.n_levels, low=1, high=6)
        return [_PARTS ** (level + 1) for level in range(n_levels)]

    def _queries(self, n_features: int) -> list[Query]:
        column_bounds(self.bounds, n_features)
        self._ranks()
        n_levels = len(self._sizes()) * n_features
        return [Query("levels", replacement.level_counts(n_levels, self.adjacency))]

    def _check_size(self, n_features: int) -> None:
        check_release_cost("DPQuantiles", n_features * sum(self._sizes()))

    def _grid_step(self, n_features: int, name: str) -> float:
        return BOX_STEP

    def _facts(self) -> list[str]:
        return [*super()._facts(), "the bounds of the columns"]

    def _learn(
        self, mechanism: GaussianMechanism, records: Floats, counted: NDArray[np.bool_]
    ) -> None:
        """Release counts of cells by column, and set the quantiles that follow."""
        n_features, sizes = records.shape[1], self._sizes()
        totals = []
        # one by one: copies of all columns might have no room
        for column in zip(
            records.T, *column_bounds(self.bounds, n_features), strict=True
        ):
            shares = (placed(*column) + 1.0) / 2.0
            cells = np.minimum((shares * sizes[-1]).astype(np.intp), sizes[-1] - 1)
            levels = np.stack([cells * size // sizes[-1] for size in sizes])
            totals.append(exact_level_counts(levels, counted, tuple(sizes)).total)
        exact = ExactSum(np.stack(totals), BOX_STEP)
        released = mechanism.release("levels", exact)
        ends = np.cumsum(sizes)[:-1]
        self.cdf_ = np.stack(
            [_cdf(np.split(column, ends)) for column in released.value]
        )
        wanted = np.repeat(self._ranks()[:, None], n_features, axis=1)
        self.quantiles_ = self._values(wanted)


def _cdf(levels: list[Floats]) -> Floats:
    """Return the parts of the records up to each edge, from noisy counts."""
    counts = agreed(levels, [1.0] * len(levels))[0][-1]
    total = max(float(counts.sum()), 1.0)
    ranks = isotonic_regression(np.cumsum(counts) / total, y_min=0.0, y_max=1.0)
    return np.concatenate([[0.0], ranks[:-1], [1.0]])


def _inverse(ranks: Floats, cdf: Floats, edges: Floats) -> Floats:
    """Return the least value of each rank; within a cell it grows evenly."""
    cell = np.clip(np.searchsorted(cdf, ranks, side="left"), 1, len(cdf) - 1)
    below, above = cdf[cell - 1], cdf[cell]
    width = above - below
    share = np.where(
        width > 0.0, (ranks - below) / np.where(width > 0.0, width, 1.0), 0.0
    )
    return edges[cell - 1] + share.clip(0.0, 1.0) * (edges[cell] - edges[cell - 1])
