import jax
import jax.numpy as jnp
import numpy as np
import pytest

from privfeat.core.bounds.sensitivity import curvature_norm
from privfeat.core.sums.arithmetic import host, kernels
from privfeat.core.sums.arithmetic.gram import gram_of
from privfeat.core.sums.records import CHUNK_ROWS
from privfeat.core.sums.statistics import arithmetic


@pytest.mark.parametrize(
    "roots_of", [host.root_curvatures_of, kernels.root_curvatures_of.__wrapped__]
)
@pytest.mark.parametrize("value", [np.nan, -1.0, 0.3, 7.0, np.inf, -np.inf])
@pytest.mark.parametrize("n_wrong", [1, 200])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_curvatures_are_bounded_whatever_the_loss_says(
    grid_rows, plant, loss, n_wrong, value, roots_of
):
    (chunk,) = grid_rows(np.ones((3, 2)), np.zeros(3), step=2.0**-20).chunks()

    def wrong(loss, scores):
        weights = np.full(scores.shape, 0.001)
        weights[:, :n_wrong] = value
        return weights if isinstance(scores, np.ndarray) else jnp.asarray(weights)

    plant("curvatures of the loss", wrong)
    xp = np if roots_of is host.root_curvatures_of else jnp
    with jax.enable_x64(True):
        roots = np.asarray(roots_of(chunk, xp.ones((200, 2)), 1.0, loss))
    assert roots.min() >= 0.0
    assert roots.max() <= 0.5
    assert np.linalg.norm(roots[0] ** 2) <= curvature_norm(loss, 200)


@pytest.mark.parametrize("module", [host, kernels])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_curvatures_that_are_no_numbers_are_zero(grid_rows, loss, module):
    (chunk,) = grid_rows(np.ones((3, 2)), np.zeros(3), step=2.0**-20).chunks()
    with jax.enable_x64(True):
        roots = module.root_curvatures_of(chunk, np.full((3, 2), np.nan), 1.0, loss)
    np.testing.assert_array_equal(roots, np.zeros_like(roots))


@pytest.mark.slow
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
            yield arithmetic().class_sums_of(chunk, 2)
            yield arithmetic().gradient_of(
                chunk, whole=coef, grid_step=1.0, loss="softmax", clip_norm=0.5
            )
            yield arithmetic().root_curvatures_of(chunk, coef, 2.0**-20, "softmax")
        yield gram_of(np.asarray(chunk.rows))

    expected = [np.asarray(product) for product in products()]
    with jax.default_matmul_precision(precision):
        found = [np.asarray(product) for product in products()]
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("backend", "n_rows"),
    [("cpu", 3), ("gpu", 3), ("cpu", 8 * CHUNK_ROWS), ("gpu", CHUNK_ROWS)],
)
def test_gram_of_the_largest_rows_is_exact(monkeypatch, backend, n_rows):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    rows = np.random.default_rng(0).integers(2**20 - 9, 2**20 + 1, (n_rows, 2))
    found = np.asarray(gram_of(rows.astype(np.float32)))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, rows.T @ rows)
