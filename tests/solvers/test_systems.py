import numpy as np
import pytest

from privfeat.core.noise.release import Release
from privfeat.solvers.spectrum import regularized_inverse
from privfeat.solvers.systems import solve_regularized, weighted_sum


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def release(matrix, *, stddev=1.0, symmetric=True):
    return Release("gram", np.array(matrix, np.float64), stddev, symmetric)


@pytest.mark.parametrize("symmetric", [True, False])
def test_solve_regularized_solves_the_system(rng, symmetric):
    rows, rhs = rng.normal(size=(20, 5)), rng.normal(size=5)
    matrix = rows.T @ rows + (0.0 if symmetric else rng.normal(size=(5, 5)))
    found = solve_regularized(release(matrix, symmetric=symmetric), rhs, ridge=0.5)
    np.testing.assert_allclose(
        found, np.linalg.solve(matrix + 0.5 * np.eye(5), rhs), atol=1e-10
    )


def test_solve_regularized_projects_an_indefinite_matrix(rng):
    matrix = rng.normal(size=(5, 5))
    matrix, rhs = release(matrix + matrix.T), rng.normal(size=5)
    found = solve_regularized(matrix, rhs, ridge=0.1)
    np.testing.assert_allclose(found, regularized_inverse(matrix, ridge=0.1) @ rhs)


def test_solve_regularized_leaves_the_release_alone(rng):
    matrix = release(np.eye(3))
    solve_regularized(matrix, np.ones(3), ridge=1.0)
    np.testing.assert_array_equal(matrix.value, np.eye(3))


def test_solve_regularized_takes_a_singular_matrix():
    found = solve_regularized(release(np.diag([2.0, 0.0])), np.ones(2), ridge=0.0)
    np.testing.assert_allclose(found, [0.5, 0.0])


def test_weighted_sum_adds_values_and_variances(rng):
    one, two = rng.normal(size=(2, 3, 3))
    found = weighted_sum(release(one, stddev=3.0), release(two, stddev=8.0), 0.5)
    np.testing.assert_allclose(found.value, one + 0.5 * two)
    assert found.noise_stddev == 5.0
    assert found.symmetric


def test_weighted_sum_with_a_full_noise_matrix_is_not_symmetric():
    one, two = release(np.eye(2)), release(np.eye(2), symmetric=False)
    assert not weighted_sum(one, two, 1.0).symmetric
