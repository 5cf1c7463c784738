"""Accuracies of several estimators over several budgets, as data and as text."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["AccuracyGrid", "format_grid"]


@dataclass(frozen=True)
class AccuracyGrid:
    """Test accuracies by estimator and epsilon, one per fit.

    Parameters
    ----------
    accuracies : mapping of str to mapping of float to sequence of float
        ``accuracies[estimator][epsilon]``, in [0, 1]; ``epsilon`` may be inf. Every
        estimator has the same epsilons.
    baseline : float
        Accuracy without privacy of the method ``baseline_name``.
    baseline_name : str
        What the baseline is.
    title : str
        One line: the data, the number of rows, delta.

    Raises
    ------
    ValueError
        If there is no accuracy, or the estimators have different epsilons.

    Examples
    --------
    >>> grid = AccuracyGrid(
    ...     {"DPFC": {1.0: [0.8, 0.9], math.inf: [0.95]}},
    ...     baseline=0.96,
    ...     baseline_name="LogisticRegression",
    ...     title="digits",
    ... )
    >>> print(format_grid(grid))
    epsilon                 1    inf
    DPFC                0.850  0.950
    LogisticRegression         0.960
    """

    accuracies: Mapping[str, Mapping[float, Sequence[float]]]
    baseline: float
    baseline_name: str
    title: str

    def __post_init__(self) -> None:
        budgets = {tuple(sorted(cells)) for cells in self.accuracies.values()}
        cells = [cell for row in self.accuracies.values() for cell in row.values()]
        if len(budgets) != 1 or not cells or not all(cells):
            raise ValueError(
                "accuracies must give every estimator the same epsilons, each with at "
                "least one accuracy."
            )

    @property
    def estimators(self) -> tuple[str, ...]:
        """Names of the estimators, in the given order."""
        return tuple(self.accuracies)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The budgets, ascending; the last may be inf."""
        return tuple(sorted(next(iter(self.accuracies.values()))))

    def mean(self, estimator: str, epsilon: float) -> float:
        """Return the mean accuracy of one cell."""
        return statistics.fmean(self.accuracies[estimator][epsilon])

    def spread(self, estimator: str, epsilon: float) -> float:
        """Return the standard deviation over the fits of one cell; 0 for one fit."""
        values = self.accuracies[estimator][epsilon]
        return statistics.stdev(values) if len(values) > 1 else 0.0


def format_grid(grid: AccuracyGrid) -> str:
    """Return the mean accuracies as an aligned table, a row for each estimator.

    The baseline stands in the column of epsilon inf, which is always there.
    """
    epsilons = [*(e for e in grid.epsilons if e != math.inf), math.inf]
    rows = [["epsilon", *(f"{epsilon:g}" for epsilon in epsilons)]]
    for name, known in grid.accuracies.items():
        means = [f"{grid.mean(name, e):.3f}" if e in known else "" for e in epsilons]
        rows.append([name, *means])
    blank = [""] * (len(epsilons) - 1)
    rows.append([grid.baseline_name, *blank, f"{grid.baseline:.3f}"])
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    lines = []
    for name, *cells in rows:
        padded = (f"  {cell:>{n}}" for cell, n in zip(cells, others, strict=True))
        lines.append(f"{name:{first}}{''.join(padded)}".rstrip())
    return "\n".join(lines)
