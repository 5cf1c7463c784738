"""The practice tools on networks: the least one, on a few tiny images."""

import jax
import numpy as np
import pytest

pytest.importorskip("flax")

from flax import nnx

from privfeat import DPSGDClassifier, TemperatureScaling
from privfeat.analysis.ablation import ClipNormDisplay, clip_norm_ablation
from privfeat.analysis.metrics import report_of
from privfeat.analysis.ntk import clipped_kernel, matrix_properties
from privfeat.analysis.ntk_decay import measure_decay
from privfeat.analysis.reliability import ReliabilityDisplay
from privfeat.networks.model import Network
from privfeat.networks.models.mlp import MLP

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.fixture(scope="module")
def images():
    """Return sixty images of 4 x 4 pixels, dark, grey and bright."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    low = (80 * y)[:, None, None, None]
    return rng.integers(low, low + 90, (60, 4, 4, 1)).astype(np.uint8), y


def make(**options):
    settings = {"model": "mlp", "classes": range(3), "noise_multiplier": 1.0}
    settings |= {"n_iter": 10, "expected_batch_size": None, "learning_rate": 0.01}
    return DPSGDClassifier(**(settings | options))


@pytest.fixture(scope="module")
def network(images):
    return make().fit(*images)


def test_reliability_and_temperature_of_a_network(network, images):
    X, y = images
    report = report_of(network, X, y)
    assert report.accuracy > 0.8
    display = ReliabilityDisplay.from_estimator(network, X, y)
    assert display.ax_.get_ylabel() == "accuracy"
    scaled = TemperatureScaling(network, epsilon=2.0).fit(X, y)
    assert np.array_equal(scaled.predict(X), network.predict(X))
    assert scaled.privacy_.epsilon <= 2.0


def test_ablation_of_a_network_by_its_clip_norm(images):
    grid = clip_norm_ablation(
        make(n_iter=2),
        [0.1, 1.0],
        [0.01],
        *images,
        *images,
        clip_parameter="clip_norm",
    )
    assert grid.values["ece"].shape == (2, 1)
    assert np.all(np.isfinite(grid.values["nll"]))
    assert ClipNormDisplay(grid, metric="ece").plot().ax_.get_title("left") == "ece"


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
