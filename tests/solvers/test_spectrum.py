import jax
import numpy as np
import pytest
from scipy import linalg, stats

from privfeat.core.noise import draws
from privfeat.core.noise.keys import KeyStream
from privfeat.core.noise.release import Release
from privfeat.solvers.spectrum import (
    noise_edge,
    noise_ridge,
    positive_part,
    regularized_inverse,
    step_noise_ridge,
)


def release(matrix, *, stddev=1.0, symmetric=True):
    return Release("gram", np.array(matrix, np.float64), stddev, symmetric)


@pytest.mark.statistical
@pytest.mark.parametrize("size", [50, 300])
def test_noise_edge_is_the_norm_of_the_noise(size):
    """Mean of ten norms within 5 %: over ten standard errors of it."""
    keys = KeyStream(0)
    norms = [
        np.linalg.norm(draws.symmetric_gaussian(keys.draw_noise_key(), size, 2.0), 2)
        for _ in range(10)
    ]
    assert np.mean(norms) == pytest.approx(noise_edge(2.0, size), rel=0.05)


def test_noise_edge_of_many_columns_follows_the_semicircle():
    """Kolmogorov distance of the spectrum of one draw; deterministic key."""
    values = np.linalg.eigvalsh(
        draws.symmetric_gaussian(KeyStream(1).draw_noise_key(), 400, 1.0)
    )
    radius = noise_edge(1.0, 400)
    assert stats.kstest(values / radius, stats.semicircular.cdf).statistic < 0.02


def test_noise_ridge_scales_the_edge():
    matrix = release(np.eye(4), stddev=3.0)
    expected = 2.0 * noise_edge(3.0, 4)
    assert noise_ridge(matrix, scale=2.0) == pytest.approx(expected, rel=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("score_noise", [0.5, 1.0])
def test_step_noise_ridge_lets_the_steps_move_a_score_by_so_much(score_noise):
    """Chi-square of 20,000 scores; false-positive rate 1e-6, 5 % error always fails.

    Steps of noise alone, where the Gram matrix is zero, on a row of norm ``C``.
    """
    n_steps, rate, stddev, radius, n_draws = 5, 0.7, 3.0, 0.4, 20_000
    ridge = step_noise_ridge(
        release(np.zeros((3, 3)), stddev=0.0),
        step_noise_stddev=stddev,
        n_steps=n_steps,
        learning_rate=rate,
        row_norm=radius,
        score_noise=score_noise,
    )
    inverse = regularized_inverse(release(np.zeros((3, 3))), ridge=ridge)
    rng = np.random.default_rng(0)
    coef = np.zeros((n_draws, 3))
    for _ in range(n_steps):
        coef -= rate * rng.normal(scale=stddev, size=(n_draws, 3)) @ inverse
    scores = coef @ (radius * np.array([2.0, -1.0, 2.0]) / 3.0)
    statistic = np.sum((scores / score_noise) ** 2)
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], df=n_draws)
    assert low < statistic < high


def test_step_noise_ridge_follows_its_formula():
    matrix = release(np.eye(3), stddev=0.0)
    options = {
        "step_noise_stddev": 3.0,
        "n_steps": 25,
        "learning_rate": 0.5,
        "row_norm": 2.0,
    }
    found = step_noise_ridge(matrix, score_noise=1.0, **options)
    assert found == pytest.approx(0.5 * 5.0 * 3.0 * 2.0, rel=1e-6)
    half = step_noise_ridge(matrix, score_noise=2.0, **options)
    assert half == pytest.approx(found / 2.0, rel=1e-6)


def test_step_noise_ridge_is_positive_without_noise():
    found = step_noise_ridge(
        release(np.eye(3), stddev=0.0),
        step_noise_stddev=0.0,
        n_steps=1,
        learning_rate=1.0,
        row_norm=1.0,
    )
    assert found > 0.0


@pytest.mark.parametrize("matrix", [np.eye(3), np.zeros((3, 3))])
def test_noise_ridge_is_positive_without_noise(matrix):
    assert noise_ridge(release(matrix, stddev=0.0), scale=1.0) > 0.0


def test_regularized_inverse_of_a_positive_matrix_is_the_inverse():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 5))
    found = regularized_inverse(release(rows.T @ rows), ridge=0.5)
    np.testing.assert_allclose(
        found, np.linalg.inv(rows.T @ rows + 0.5 * np.eye(5)), atol=1e-12
    )


def test_regularized_inverse_projects_negative_eigenvalues():
    rng = np.random.default_rng(0)
    vectors, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    values = np.array([-5.0, -0.1, 0.3, 2.0])
    found = regularized_inverse(release(vectors * values @ vectors.T), ridge=0.2)
    kept = 1.0 / (np.maximum(values, 0.0) + 0.2)
    np.testing.assert_allclose(found, vectors * kept @ vectors.T, atol=1e-10)


def test_regularized_inverse_takes_a_full_noise_matrix_as_it_is():
    matrix = np.random.default_rng(0).normal(size=(4, 4))
    found = regularized_inverse(release(matrix, symmetric=False), ridge=0.3)
    np.testing.assert_allclose(
        found, np.linalg.inv(matrix + 0.3 * np.eye(4)), rtol=1e-8
    )


@pytest.mark.parametrize("symmetric", [True, False])
def test_regularized_inverse_of_a_singular_matrix_is_zero_where_it_is(symmetric):
    """A fit would raise after its charge, on records or noise that nobody can know."""
    basis = np.linalg.qr(np.arange(9.0).reshape(3, 3) ** 2)[0]
    matrix = basis * [4.0, 2.0, 0.0] @ basis.T
    found = regularized_inverse(release(matrix, symmetric=symmetric), ridge=0.0)
    np.testing.assert_allclose(found, basis * [0.25, 0.5, 0.0] @ basis.T, atol=1e-9)
    zero = release(np.zeros((2, 2)), symmetric=symmetric)
    np.testing.assert_array_equal(regularized_inverse(zero, ridge=0.0), 0.0)


def noisy_gram(size=600, stddev=2.0):
    """Return the Gram matrix of few strong directions and noise: half is negative."""
    rows = np.random.default_rng(0).normal(size=(300, size)) * np.exp(-np.arange(size))
    noise = draws.symmetric_gaussian(KeyStream(2).draw_noise_key(), size, stddev)
    return release(10.0 * rows.T @ rows + noise, stddev=stddev)


def inverse_of_projection(matrix, ridge):
    values, vectors = np.linalg.eigh(matrix.value)
    return (vectors / (np.maximum(values, 0.0) + ridge)) @ vectors.T


@pytest.mark.parametrize("scale", [0.3, 1e-5])
def test_regularized_inverse_of_many_rows_rounds_far_below_noise_and_ridge(scale):
    """With the smaller ridge, float32 would be off by more than the inverse itself."""
    matrix = noisy_gram()
    ridge = scale * noise_edge(2.0, 600)
    found = regularized_inverse(matrix, ridge=ridge)
    expected = inverse_of_projection(matrix, ridge)
    assert np.linalg.norm(found - expected, 2) < 1e-4 * np.linalg.norm(expected, 2)
    strongest = np.linalg.eigh(matrix.value)[1][:, -1]
    gap = (found - expected) @ strongest
    assert np.linalg.norm(gap) < 1e-4 * np.linalg.norm(expected @ strongest)


def test_regularized_inverse_of_many_rows_is_exact_without_noise():
    rows = np.random.default_rng(0).normal(size=(40, 600))
    matrix = release(rows.T @ rows - 0.1 * np.eye(600), stddev=0.0)
    expected = inverse_of_projection(matrix, 1e-3)
    found = regularized_inverse(matrix, ridge=1e-3)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_cholesky_and_eigenvectors_agree_where_both_hold(plant):
    rows = np.random.default_rng(0).normal(size=(20, 6))
    matrix = release(rows.T @ rows)
    found, part = regularized_inverse(matrix, ridge=0.5), positive_part(matrix)
    np.testing.assert_array_equal(found, found.T)
    plant("factor of a Gram matrix", lambda *_: None)
    np.testing.assert_allclose(
        found, regularized_inverse(matrix, ridge=0.5), atol=1e-12
    )
    np.testing.assert_allclose(part, positive_part(matrix), atol=1e-12)


@pytest.mark.parametrize("depth", [0.5, 2.0])
def test_the_cut_is_left_out_only_where_it_changes_nothing(depth):
    """An eigenvalue ``2**-20`` of the ridge below zero is the limit."""
    ridge = 4.0
    vectors = linalg.hilbert(3)
    vectors, _ = np.linalg.qr(vectors)
    values = np.array([-depth * 2.0**-20 * ridge, 1.0, 2.0])
    found = regularized_inverse(release(vectors * values @ vectors.T), ridge=ridge)
    kept = 1.0 / (np.maximum(values, 0.0) + ridge)
    np.testing.assert_allclose(found, vectors * kept @ vectors.T, atol=1e-6 / ridge)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_regularized_inverse_refuses_a_matrix_that_is_not_finite(value):
    with pytest.raises(FloatingPointError, match="must be finite, got overflow"):
        regularized_inverse(release(np.full((3, 3), value)), ridge=1.0)


def test_eigenvectors_on_an_accelerator_are_those_of_a_cpu(monkeypatch):
    matrix = noisy_gram(12)
    expected = regularized_inverse(matrix, ridge=0.3)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    found = regularized_inverse(matrix, ridge=0.3)
    np.testing.assert_allclose(found, expected, atol=1e-10)
