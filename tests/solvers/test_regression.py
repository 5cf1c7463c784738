import numpy as np
import pytest
from sklearn.linear_model import Ridge

from privfeat.core.noise.release import Release
from privfeat.solvers.regression import NoisyRegression
from privfeat.solvers.spectrum import cleaned, positive_part


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) + 2.0
    return X, X @ [1.0, -2.0, 0.5] + 3.0 + rng.normal(size=50)


def moments(*columns, noise=0.0, stddev=0.0):
    stacked = np.column_stack(columns)
    return Release("moments", stacked.T @ stacked + noise, stddev, symmetric=True)


@pytest.mark.parametrize("ridge", [1e-9, 1.0, 100.0])
def test_coef_equals_ridge_with_an_intercept(rows, ridge):
    X, y = rows
    release = moments(X, y, np.full(50, 0.5))
    *slopes, offset = NoisyRegression(release, 3, 9.0, 0.5, ridge).coef()
    expected = Ridge(alpha=ridge).fit(X, y)
    np.testing.assert_allclose(slopes, expected.coef_, rtol=1e-6)
    assert offset * 0.5 == pytest.approx(expected.intercept_, rel=1e-6)


def test_coef_without_a_constant_has_no_offset(rows):
    X, y = rows
    coef = NoisyRegression(moments(X, y), 3, 9.0, 0.0, 1.0).coef()
    expected = Ridge(alpha=1.0, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(coef, expected.coef_, rtol=1e-6)


@pytest.mark.parametrize("count", [-50.0, 0.0])
def test_coef_survives_a_count_lost_in_noise(count):
    value = np.diag([10.0, 10.0, 5.0, count])
    value[0, 2] = value[2, 0] = value[0, 3] = value[3, 0] = 3.0
    release = Release("moments", value, 1.0, symmetric=True)
    coef = NoisyRegression(release, 2, 4.0, 1.0, 1.0).coef()
    assert np.all(np.abs(coef) < 100.0)


def test_coef_without_a_ridge_survives_directions_that_noise_has_taken():
    """The budget is spent by then: half of the values of noise alone are cut to 0."""
    values = np.diag([4.0, -1.0, 2.0])
    values[0, 2] = values[2, 0] = 1.0
    release = Release("moments", values, 1.0, symmetric=True)
    coef = NoisyRegression(release, 2, 1.0, constant=0.0, ridge=0.0).coef()
    np.testing.assert_allclose(coef, [0.25, 0.0])


def test_positive_part_is_the_nearest_positive_semidefinite_matrix():
    rng = np.random.default_rng(0)
    value = rng.normal(size=(5, 5))
    value = value + value.T
    found = positive_part(Release("gram", value, 1.0, symmetric=True))
    assert np.linalg.eigvalsh(found).min() > -1e-12
    negative = found - value  # the part cut off is positive, and orthogonal to the rest
    assert np.linalg.eigvalsh(negative).min() > -1e-12
    assert np.sum(found * negative) == pytest.approx(0.0, abs=1e-10)


def test_corrections_reach_least_squares_from_a_wrong_matrix(rows):
    """Exact sums of residuals, and noise in the matrix: a ridge would shrink much."""
    X, y = rows
    exact = moments(X, y, np.ones(50)).value
    noise = np.random.default_rng(1).normal(size=exact.shape)
    release = Release("moments", exact + noise + noise.T, 2.0, symmetric=True)
    regression = NoisyRegression(release, 3, 9.0, 1.0)

    def residual_sums(direction):
        return Release("residual_sums", (exact @ direction)[None], 1e-9, False)

    first, last = (
        regression.corrected(residual_sums, n_steps=n, bound=1.0, noise_stddev=1e-9)
        for n in (0, 20)
    )
    np.testing.assert_array_equal(first, regression.coef())
    expected = np.linalg.lstsq(np.column_stack([X, np.ones(50)]), y)[0]
    np.testing.assert_allclose(last, expected, rtol=1e-3)
    assert np.linalg.norm(first - expected) > 0.1


def test_corrections_without_signal_move_little(rows):
    """Ten steps of noise alone; whole ones would move the coefficients by 123."""
    X, y = rows
    regression = NoisyRegression(moments(X, y, np.ones(50), stddev=1.0), 3, 9.0, 1.0)
    rng = np.random.default_rng(0)

    def residual_sums(direction):
        noise = 10.0 * rng.normal(size=(1, len(direction)))
        return Release("residual_sums", noise, 10.0, symmetric=False)

    options = {"n_steps": 10, "bound": 1.0, "noise_stddev": 10.0}
    found = regression.corrected(residual_sums, **options)
    assert np.linalg.norm(found - regression.coef()) < 60.0


@pytest.mark.parametrize("spectrum", [[40.0] * 30, [400.0, 100.0, *[5.0] * 28]])
def test_cleaned_is_nearer_to_the_exact_matrix(spectrum):
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    exact = (axes * spectrum) @ axes.T
    noise = rng.normal(size=exact.shape) * 5.0
    noisy = Release("gram", exact + (noise + noise.T) / 2.0, 5.0, symmetric=True)
    found, cut = (np.linalg.norm(f(noisy) - exact) for f in (cleaned, positive_part))
    assert found < 0.75 * cut
    assert np.linalg.eigvalsh(cleaned(noisy)).min() > -1e-9


def test_cleaned_leaves_a_matrix_without_noise():
    value = np.diag([3.0, 0.0, 2.0])
    found = cleaned(Release("gram", value, 0.0, symmetric=True))
    np.testing.assert_allclose(found, value, atol=1e-12)
