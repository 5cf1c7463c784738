"""The practice tools on networks: the least one, on a few tiny images."""

import numpy as np
import pytest

pytest.importorskip("flax")

from privfeat import DPSGDClassifier, TemperatureScaling
from privfeat.analysis.calibration import report_of
from privfeat.analysis.reliability import ReliabilityDisplay

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.fixture(scope="module")
def images():
    """Return sixty images of 4 x 4 pixels, dark, grey and bright."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    low = (80 * y)[:, None, None, None]
    return rng.integers(low, low + 90, (60, 4, 4, 1)).astype(np.uint8), y


@pytest.fixture(scope="module")
def network(images):
    settings = {"model": "mlp", "classes": range(3), "noise_multiplier": 1.0}
    settings |= {"n_iter": 10, "expected_batch_size": None, "learning_rate": 0.01}
    return DPSGDClassifier(**settings).fit(*images)


@pytest.mark.slow
def test_reliability_and_temperature_of_a_network(network, images):
    X, y = images
    report = report_of(network, X, y)
    assert report.accuracy > 0.8
    display = ReliabilityDisplay.from_estimator(network, X, y)
    assert display.ax_.get_ylabel() == "accuracy"
    scaled = TemperatureScaling(network, epsilon=2.0).fit(X, y)
    assert np.array_equal(scaled.predict(X), network.predict(X))
    assert scaled.privacy_.epsilon <= 2.0
