import numpy as np
import pytest

from privfeat.metrics.tables import UnitGrid
from privfeat.solvers.levels import agreed


def design(sizes):
    """Which finest cells each count of each level is the sum of."""
    cells = np.arange(sizes[-1])
    return np.vstack(
        [np.equal.outer(np.arange(n), cells * n // sizes[-1]) for n in sizes]
    ).astype(float)


@pytest.mark.parametrize("sizes", [(1, 3), (2, 4, 8), (1, 5, 5), (4, 16, 64), (3,)])
def test_agreed_counts_are_those_of_least_squares(sizes):
    """Against the normal equations, with a variance for each level."""
    rng, of = np.random.default_rng(0), np.arange(1.0, len(sizes) + 1)
    levels = [10.0 * rng.normal(size=n) for n in sizes]
    weights, matrix = np.repeat(1.0 / of, sizes), design(sizes)
    covariance = np.linalg.inv(matrix.T @ (weights[:, None] * matrix))
    finest = covariance @ matrix.T @ (weights * np.concatenate(levels))
    found, variances = agreed(levels, of)
    assert np.concatenate(found) == pytest.approx(matrix @ finest)
    expected = np.diag(matrix @ covariance @ matrix.T)
    assert np.repeat(variances, sizes) == pytest.approx(expected)


def test_grid_covariance_is_that_of_agreed_counts():
    grid = UnitGrid((2, 4, 8))
    matrix = design(grid.sizes)
    expected = np.linalg.inv(matrix.T @ matrix)
    assert grid.noise_covariance() == pytest.approx(expected)


def test_grid_is_narrow_at_its_ends_and_mirrors_itself():
    edges = UnitGrid().edges
    assert (edges[0], edges[-1], len(edges)) == (0.0, 1.0, 65)
    assert edges == pytest.approx(1.0 - edges[::-1])
    assert edges[1] < 0.001 < 0.02 < edges[33] - edges[32] < 0.03


def test_cells_hold_their_upper_edge_and_every_number():
    grid = UnitGrid((2, 4))
    given = [*grid.edges, -1.0, 2.0, np.nan]
    assert grid.cells(given).tolist() == [0, 0, 1, 2, 3, 0, 3, 3]
    assert grid.at_all_levels(np.array([0, 1, 2, 3])).tolist() == [
        [0, 0, 1, 1],
        [0, 1, 2, 3],
    ]
