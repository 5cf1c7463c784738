import jax
import jax.numpy as jnp
import numpy as np
import pytest

from privfeat.core.bounds.sensitivity import curvature_norm
from privfeat.core.sums.kernels import class_sums_of, gradient_of, root_curvatures_of
from privfeat.core.sums.records import CHUNK_ROWS
from privfeat.core.sums.statistics import COEF_BITS, gram_of, whole_coef


@pytest.mark.parametrize("largest", [2.0**-40, 0.3, 1.0, 2.0, 3.0, 2.0**60])
def test_coefficients_become_whole_and_fill_their_bits(largest):
    """Whole numbers of norm at most 2**32: their products with rows are exact."""
    coef = np.array([[0.6, 0.0, -0.8], [0.1, 0.2, 0.3]]) * largest
    whole, unit = whole_coef(coef, private=True)
    np.testing.assert_array_equal(whole, np.trunc(whole))
    norms = np.linalg.norm(whole, axis=1)
    assert 2**31 - 2 < norms.max() <= 2**32
    np.testing.assert_allclose(whole * unit, coef, atol=largest * 2.0**-31)


@pytest.mark.parametrize("shape", [(1, 400), (400, 1)])
def test_the_longest_row_decides_the_unit(shape):
    whole, _ = whole_coef(np.ones(shape), private=True)
    assert 2**31 - 400 < np.linalg.norm(whole, axis=1).max() <= 2**32


def test_products_of_rows_and_coefficients_fit_into_float64():
    assert 20 + COEF_BITS <= 53


@pytest.mark.parametrize("coef", [np.zeros((2, 3)), np.zeros((0, 3))])
def test_coefficients_of_zero_stay_zero(coef):
    whole, unit = whole_coef(coef, private=True)
    np.testing.assert_array_equal(whole, coef)
    assert np.isfinite(unit)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_coefficients_that_are_not_finite_make_no_number(bad):
    whole, _ = whole_coef(np.array([[bad, 1.0]]), private=True)
    assert np.isnan(whole).all()


def test_coefficients_without_privacy_stay_as_they_are():
    coef = np.array([[0.1, np.pi]])
    whole, unit = whole_coef(coef, private=False)
    assert whole is coef
    assert unit == 1.0


@pytest.mark.parametrize("value", [np.nan, -1.0, 0.3, 7.0, np.inf, -np.inf])
@pytest.mark.parametrize("n_wrong", [1, 200])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_curvatures_are_bounded_whatever_the_loss_says(
    grid_rows, plant, loss, n_wrong, value
):
    (chunk,) = grid_rows(np.ones((3, 2)), np.zeros(3), step=2.0**-20).chunks()
    wrong = jnp.full((CHUNK_ROWS, 200), 0.001).at[:, :n_wrong].set(value)
    plant("curvatures of the loss", lambda *_: wrong)
    with jax.enable_x64(True):
        roots = root_curvatures_of.__wrapped__(chunk, np.ones((200, 2)), 1.0, loss)
    roots = np.asarray(roots)
    assert roots.min() >= 0.0
    assert roots.max() <= 0.5
    assert np.linalg.norm(roots[0] ** 2) <= curvature_norm(loss, 200)


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_curvatures_that_are_no_numbers_are_zero(grid_rows, loss):
    (chunk,) = grid_rows(np.ones((3, 2)), np.zeros(3), step=2.0**-20).chunks()
    with jax.enable_x64(True):
        roots = root_curvatures_of(chunk, np.full((3, 2), np.nan), 1.0, loss)
    np.testing.assert_array_equal(roots, np.zeros_like(roots))


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize("precision", ["BF16_BF16_F32", "F32_F32_F32", "default"])
def test_products_stay_exact_whatever_precision_a_process_asks_for(
    grid_rows, monkeypatch, precision, backend
):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    rng = np.random.default_rng(0)
    rows, labels = rng.integers(-(2**19), 2**19, (30, 3)), rng.integers(0, 2, 30)
    coef = rng.normal(size=(2, 3))
    (chunk,) = grid_rows(rows, labels, step=2.0**-20).chunks()

    def products():
        jax.clear_caches()
        with jax.enable_x64(True):
            yield class_sums_of(chunk, 2)
            yield gradient_of(chunk, coef, 1.0, loss="softmax", clip_norm=0.5)
            yield root_curvatures_of(chunk, coef, 2.0**-20, "softmax")
        yield gram_of(np.asarray(chunk.rows))

    expected = [np.asarray(product) for product in products()]
    with jax.default_matmul_precision(precision):
        found = [np.asarray(product) for product in products()]
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize("n_rows", [3, CHUNK_ROWS])
def test_gram_of_the_largest_rows_is_exact(monkeypatch, backend, n_rows):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    rows = np.random.default_rng(0).integers(2**20 - 9, 2**20 + 1, (n_rows, 2))
    found = np.asarray(gram_of(rows.astype(np.float32)))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, rows.T @ rows)
