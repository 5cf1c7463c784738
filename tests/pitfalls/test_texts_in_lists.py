"""One record that is given as a text decides how no other is read.

NumPy makes texts of all numbers in a list with one text, and the shortest text of a
half, 0.1, is another number than the half, 0.09998.
"""

import numpy as np
import pytest

from privfeat import DPLeastSquaresRegressor, DPSGDRegressor
from privfeat._messages import array_of
from privfeat.core.noise.observation import observe
from privfeat.metrics import evaluation_of_predictions, private_evaluation

HALF = np.float16(0.1)
N = 2000
X = np.ones((N + 1, 3))
OPTIONS = {"epsilon": 1.0, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")


def moved(release, *given):
    """Return how far one record more moves the first sum, and what is stated."""
    sums = []

    def see(exact, release):
        sums.append(np.ravel(exact.value))
        return release

    with observe(see):
        release(*(rows[:N] for rows in given))
        n_released = len(sums)
        found = release(*given)
    stated = getattr(found, "privacy_", None) or found.privacy
    bound = stated.releases[0].l2_sensitivity
    return np.linalg.norm(sums[n_released] - sums[0]), bound


@pytest.mark.parametrize("text", ["0.1", b"0.1"])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.09, 0.11)])
def test_targets_of_a_fit(text, bounds):
    model = DPLeastSquaresRegressor(target_bounds=bounds, **OPTIONS)
    change, bound = moved(model.fit, X, [*[HALF] * N, text])
    assert 0.0 < change <= bound


def test_targets_of_an_evaluation():
    y = [*[HALF] * N, "0.1"]
    model = DPLeastSquaresRegressor(target_bounds=(0.0, 1.0), **OPTIONS)
    model.fit(X, np.linspace(0.0, 1.0, N + 1))

    def evaluate(X, y):
        return private_evaluation(model, X, y, target_bounds=(0.09, 0.11), **OPTIONS)

    change, bound = moved(evaluate, X, y)
    assert 0.0 < change <= bound


def test_predictions_that_are_evaluated():
    p = np.random.default_rng(0).uniform(size=N).astype(np.float16)
    rows = [*map(list, np.column_stack([1 - p, p])), ["0.5", "0.5"]]

    def evaluate(rows, y):
        return evaluation_of_predictions(rows, y, classes=[0, 1], **OPTIONS)

    change, bound = moved(evaluate, rows, [1] * (N + 1))
    assert 0.0 < change <= bound


def test_targets_of_a_network():
    targets = DPSGDRegressor(model="mlp")._problem([HALF, "0.5", np.float32(0.3)])
    expected = np.float32([HALF, 0.5, np.float32(0.3)])
    np.testing.assert_array_equal(targets.targets[:, 0], expected)


@pytest.mark.parametrize("values", [["a", "b"], np.array(["a", "b"])])
def test_texts_alone_are_texts(values):
    assert array_of(values).dtype.kind == "U"
    with pytest.raises(TypeError, match="must hold numbers, got text"):
        array_of(values, np.float64)


def test_texts_and_bytes_stay_apart():
    assert array_of(["a", b"a"]).tolist() == ["a", b"a"]


def test_complex_numbers_are_no_floats():
    with pytest.raises(TypeError, match="must hold numbers"):
        array_of(np.array([1.0 + 2.0j]), np.float64)
