import numpy as np
import pytest
from sklearn.linear_model import Ridge

from privfeat.core.noise.release import Release
from privfeat.solvers.regression import centred_ridge
from privfeat.solvers.spectrum import positive_part


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) + 2.0
    return X, X @ [1.0, -2.0, 0.5] + 3.0 + rng.normal(size=50)


def moments(*columns, noise=0.0, stddev=0.0):
    stacked = np.column_stack(columns)
    return Release("moments", stacked.T @ stacked + noise, stddev, symmetric=True)


@pytest.mark.parametrize("ridge", [1e-9, 1.0, 100.0])
def test_centred_ridge_equals_ridge_with_an_intercept(rows, ridge):
    X, y = rows
    release = moments(X, y, np.full(50, 0.5))
    slopes, offset = centred_ridge(release, n_features=3, ridge=ridge)
    expected = Ridge(alpha=ridge).fit(X, y)
    np.testing.assert_allclose(slopes, expected.coef_, rtol=1e-6)
    assert offset * 0.5 == pytest.approx(expected.intercept_, rel=1e-6)


def test_centred_ridge_without_a_constant_has_no_offset(rows):
    X, y = rows
    slopes, offset = centred_ridge(moments(X, y), n_features=3, ridge=1.0)
    expected = Ridge(alpha=1.0, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(slopes, expected.coef_, rtol=1e-6)
    assert offset == 0.0


@pytest.mark.parametrize("count", [-50.0, 0.0])
def test_centred_ridge_survives_a_count_lost_in_noise(count):
    value = np.diag([10.0, 10.0, 5.0, count])
    value[0, 2] = value[2, 0] = value[0, 3] = value[3, 0] = 3.0
    release = Release("moments", value, 1.0, symmetric=True)
    slopes, offset = centred_ridge(release, n_features=2, ridge=1.0)
    assert np.all(np.abs([*slopes, offset]) < 100.0)


def test_positive_part_is_the_nearest_positive_semidefinite_matrix():
    rng = np.random.default_rng(0)
    value = rng.normal(size=(5, 5))
    value = value + value.T
    found = positive_part(Release("gram", value, 1.0, symmetric=True))
    assert np.linalg.eigvalsh(found).min() > -1e-12
    negative = found - value  # the part cut off is positive, and orthogonal to the rest
    assert np.linalg.eigvalsh(negative).min() > -1e-12
    assert np.sum(found * negative) == pytest.approx(0.0, abs=1e-10)
