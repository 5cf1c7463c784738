"""The facts of Bu, Wang & Long 2023: Appendix A as printed, Table 1 on a network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from figures.ntk_decay import draw_decay, measure_decay
from figures.ntk_kernel import clipped_kernel, clipping_factors, matrix_properties
from flax import nnx
from matplotlib.figure import Figure

from privfeat.networks.engine.network import Network
from privfeat.networks.models.small import MLP


def apply(params, x):
    hidden = jnp.tanh(x @ params["first"]["w"] + params["first"]["b"][None, :])
    return hidden @ params["second"]["w"]


def scalar(params, x):
    return apply(params, x)[:, 0]


def squared(output, target):
    return jnp.sum((output - target) ** 2)


@pytest.fixture(scope="module")
def network():
    """Return parameters of a wide two-layer network, and a batch of six records."""
    rng = np.random.default_rng(0)
    params = {
        "first": {"w": rng.normal(size=(4, 30)) / 2, "b": rng.normal(size=30)},
        "second": {"w": rng.normal(size=(30, 2)) / 5},
    }
    return params, rng.normal(size=(6, 4)), rng.normal(size=(6, 2))


def kernel_of(network, clip_norm, clipping="abadi"):
    params, x, y = network
    return clipped_kernel(
        scalar, params, x, y[:, 0], squared, clip_norm=clip_norm, clipping=clipping
    )


def test_fact_a1_product_of_positive_and_diagonal():
    m1, m2 = np.array([[1, 1], [1, 2]]), np.diag([1, 0.1])
    product = m1 @ m2
    found = matrix_properties(product)
    assert found.positive_eigenvalues
    assert not found.symmetric
    assert not found.positive_quadratic_form
    x = np.array([1, -2])
    assert x @ product @ x == pytest.approx(-0.4)
    assert found.smallest_quadratic_form <= -0.4 / 5
    root = np.linalg.cholesky(m1).T  # similar to a symmetric matrix
    similar = root @ m2 @ root.T
    assert np.linalg.eigvalsh(similar) == pytest.approx(
        sorted(np.linalg.eigvals(product).real)
    )


def test_fact_a2_positive_eigenvalues_without_positive_form():
    # eigenvalues (7 ± 3 sqrt 5) / 2, as printed
    a = np.array([[-1, -3], [3, 8]])
    found = matrix_properties(a)
    assert found.positive_eigenvalues
    assert not found.positive_quadratic_form
    assert a[0, 0] == -1  # the form at (1, 0)
    assert found.smallest_eigenvalue == pytest.approx((7 - 3 * 5**0.5) / 2)


def test_fact_a3_positive_form_without_real_eigenvalues():
    a = np.array([[1, -1], [1, 1]])
    found = matrix_properties(a)
    assert found.positive_quadratic_form
    assert not found.positive_eigenvalues
    assert found.smallest_eigenvalue == pytest.approx(1)  # real parts stay positive


def test_fact_a4_sum_of_products_may_have_a_negative_eigenvalue():
    # 7/9 where 8/9 is printed: only that makes the smallest eigenvalue zero
    c1, c2 = np.diag([0.9, 0.4]), np.diag([0.1, 0.6])
    h2 = np.array([[3, 2], [2, 2]])
    for corner, sign in [(7 / 9, 0), (0.7, -1)]:
        h1 = np.array([[corner, 2], [2, 7]])
        total = h1 @ c1 + h2 @ c2
        smallest = matrix_properties(total).smallest_eigenvalue
        if sign:
            assert smallest < -1e-2
        else:
            assert smallest == pytest.approx(0, abs=1e-12)
        for matrix in (h1, h2):
            assert matrix_properties(matrix).positive_quadratic_form


def test_kernel_is_that_of_finite_differences(network):
    """Columns of the Jacobian by central differences, in a slow loop."""
    params, x, y = network
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])
    outputs = jax.jit(apply)
    with jax.enable_x64(True):
        columns = []
        for i in range(flat.size):
            step = 1e-6 * (np.arange(flat.size) == i)
            up, down = (
                outputs(unravel64(params, flat + step), x),
                outputs(unravel64(params, flat - step), x),
            )
            columns.append(np.ravel(up - down) / 2e-6)
    jacobian = np.array(columns).T
    found = clipped_kernel(
        apply, params, x, y, squared, clip_norm=0.5, clipping="abadi"
    )
    assert found.kernel == pytest.approx(jacobian @ jacobian.T, abs=1e-6)
    residual = np.asarray(apply(params, x)) - y
    assert found.loss_gradient == pytest.approx(2 * residual.ravel() / 6, abs=1e-5)
    gradients = np.einsum("nk,nkp->np", 2 * residual, jacobian.reshape(6, 2, -1))
    factors = np.minimum(1, 0.5 / np.linalg.norm(gradients, axis=1))
    assert found.factors["all"] == pytest.approx(factors, rel=1e-4)
    expected = found.kernel * np.repeat(factors, 2)[None, :]
    assert found.clipped == pytest.approx(expected, rel=1e-4)


def unravel64(params, flat):
    leaves, tree = jax.tree.flatten(params)
    sizes = np.cumsum([leaf.size for leaf in leaves])[:-1]
    parts = np.split(flat, sizes)
    return jax.tree.unflatten(
        tree, [p.reshape(leaf.shape) for p, leaf in zip(parts, leaves, strict=True)]
    )


def test_table_1_without_clipping(network):
    for clip_norm in (1e6, {"first": 1e6, "second": 1e6}):
        kernel = kernel_of(network, clip_norm)
        assert kernel.clipped == pytest.approx(kernel.kernel)
        found = kernel.properties
        assert found.symmetric
        assert found.positive_quadratic_form
        assert found.positive_eigenvalues
        assert kernel.decay < 0


def test_table_1_with_small_flat_clipping(network):
    kernel = kernel_of(network, 0.1)
    assert np.all(kernel.factors["all"] < 1)
    found = kernel.properties
    assert not found.symmetric
    assert not found.positive_quadratic_form
    assert found.positive_eigenvalues  # Theorem 1.1
    assert found.smallest_eigenvalue > 0


def test_table_1_with_small_layerwise_clipping(network):
    kernel = kernel_of(network, {"first": 0.05, "second": 0.3})
    assert not kernel.properties.symmetric
    assert not kernel.properties.positive_quadratic_form


def test_batch_clipping_scales_the_kernel_by_one_factor(network):
    """Table 1: ``c H``, or ``sum_r c_r H_r``, with ``c`` of the mean gradient."""
    flat = kernel_of(network, 0.1, "batch")
    (factors,) = flat.factors.values()
    assert np.ptp(factors) == 0
    assert flat.clipped == pytest.approx(factors[0] * flat.kernel)
    mean = scalar_gradients(network).mean(axis=0)
    assert factors[0] == pytest.approx(0.1 / np.linalg.norm(mean), rel=1e-5)
    layers = kernel_of(network, {"first": 0.1, "second": 0.2}, "batch")
    assert layers.properties.symmetric
    assert layers.properties.positive_quadratic_form
    assert layers.factors["first"][0] != layers.factors["second"][0]


def scalar_gradients(network):
    """Return the gradient of each record, (n, p)."""
    params, x, y = network

    def loss(params, record, target):
        return squared(scalar(params, record[None])[0], target)

    found = jax.vmap(jax.grad(loss), (None, 0, 0))(params, x, y[:, 0])
    return np.concatenate([leaf.reshape(6, -1) for leaf in jax.tree.leaves(found)], 1)


def test_clipping_factors():
    norms = [0.0, 0.5, 1.0, 4.0]
    assert clipping_factors(norms, 2.0) == pytest.approx([1, 1, 1, 0.5])
    assert clipping_factors(norms, 2.0, "global") == pytest.approx([1, 1, 1, 0])
    assert clipping_factors(norms, 2.0, "none") == pytest.approx([1, 1, 1, 1])
    assert clipping_factors([0.5, 4.0], 2.0, "normalize") == pytest.approx([4, 0.5])
    assert clipping_factors([0.99], 2.0, "automatic") == pytest.approx([2])
    with pytest.raises(ValueError, match="clipping must be one of"):
        clipping_factors(norms, 2.0, "soft")


@pytest.mark.parametrize("clip_norm", [0.5, {"first": 0.3, "second": 0.2}, 1e6])
def test_predicted_decay_is_measured(network, clip_norm):
    """Without noise the error is of order rate; it is cut to a tenth with the rate."""
    params, x, y = network
    errors = []
    for rate in (1e-3, 1e-4):
        decay = measure_decay(
            apply, params, x, y, squared,
            clip_norm=clip_norm, learning_rate=rate, n_steps=5,
        )  # fmt: skip
        ratio = decay.measured / decay.predicted
        errors.append(float(np.max(np.abs(ratio - 1))))
    assert errors[1] < 0.02
    assert errors[1] < 0.2 * errors[0]


def test_noise_does_not_change_the_flow(network):
    """Fact 4.1: the loss after time 0.2 is that of the flow as the rate goes to 0.

    Root mean square over ten seeds: theory says sqrt(8) times less with 64 steps.
    """
    params, x, y = network

    def last_loss(steps, noise, seed=0):
        decay = measure_decay(
            apply, params, x, y, squared, clip_norm=1.0, learning_rate=0.2 / steps,
            noise_multiplier=noise, n_steps=steps, seed=seed,
        )  # fmt: skip
        return decay.losses[-1]

    start = float(np.mean(np.sum((apply(params, x) - y) ** 2, axis=1)))
    gaps = []
    for steps in (4, 32):
        flow = last_loss(steps, 0.0)
        found = [last_loss(steps, 2.0, seed) - flow for seed in range(10)]
        gaps.append(float(np.sqrt(np.mean(np.square(found)))))
    assert gaps[1] < 0.6 * gaps[0]
    assert gaps[1] < 0.15 * (start - flow)


def test_layers_of_clip_norm_must_be_those_of_params(network):
    with pytest.raises(ValueError, match="clip_norm must have the layers"):
        kernel_of(network, {"first": 1.0})


def test_properties_need_a_square_matrix():
    with pytest.raises(ValueError, match="square and finite"):
        matrix_properties(np.ones((2, 3)))
    with pytest.raises(ValueError, match="square and finite"):
        matrix_properties([[np.nan]])


def test_figure_has_both_curves(network):
    params, x, y = network
    decay = measure_decay(
        apply, params, x, y, squared, clip_norm=1.0, learning_rate=1e-3, n_steps=3
    )
    ax = Figure().subplots()
    draw_decay(decay, ax)
    lines = ax.get_lines()
    assert np.array_equal(lines[0].get_ydata(), decay.losses)
    assert lines[1].get_ydata()[-1] == pytest.approx(
        decay.losses[0] + decay.predicted.sum()
    )


@pytest.mark.parametrize("layerwise", [False, True])
def test_kernel_and_loss_decay_of_a_flax_network(layerwise):
    """Bu et al. 2023, Table 1, and the flow that it predicts, to 5 % of a small step.

    Every parameter is a layer of its own. Six records and two outputs.
    """
    module = MLP((4,), 2, widths=(8,), rngs=nnx.Rngs(params=jax.random.key(0)))
    network = Network(module)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 4)), rng.integers(0, 2, 6)

    def loss(output, target):
        return jax.nn.logsumexp(output) - output[target]

    bound = dict.fromkeys(network.initial, 0.1) if layerwise else 0.1
    arguments = (network, network.initial, x, y, loss)
    kernel = clipped_kernel(*arguments, clip_norm=bound)
    whole = matrix_properties(kernel.kernel)
    assert whole.symmetric
    assert whole.positive_quadratic_form
    assert not matrix_properties(kernel.clipped).symmetric
    if not layerwise:
        assert matrix_properties(kernel.clipped).positive_eigenvalues
    decay = measure_decay(*arguments, clip_norm=bound, learning_rate=1e-3, n_steps=3)
    assert np.all(decay.measured < 0)
    assert decay.measured == pytest.approx(decay.predicted, rel=0.05)
