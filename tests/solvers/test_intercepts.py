import numpy as np
import pytest

from privfeat.core.noise.release import Release
from privfeat.estimation.predictor import class_probabilities, label_probabilities
from privfeat.solvers.intercepts import first_intercepts

SHARES = np.array([0.01, 0.24, 0.75])


def gradient(loss, shares, *, n=10_000, constant=0.1, largest=10.0):
    """The sum at coefficients of zero, of residuals clipped to ``largest``."""
    m = len(shares)
    p = {"softmax": 1.0 / m, "sigmoid": 0.5, "squared": 0.0}[loss]
    total = np.zeros(m)
    for label, share in enumerate(shares):
        residual = p - np.eye(m)[label]
        total += n * share * residual * min(1.0, largest / np.linalg.norm(residual))
    return np.column_stack([np.zeros(m), constant * total])


def found(loss, values, *, stddev=0.0, n=10_000, constant=0.1, largest=10.0):
    release = Release("gradient", values, stddev, False)
    options = {"n_records": n, "constant": constant, "largest": largest}
    return constant * first_intercepts(release, loss=loss, **options)


@pytest.mark.parametrize("largest", [10.0, 0.4])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
def test_probabilities_become_the_shares(loss, largest):
    """Without noise, whatever the clip: all residuals are equally long."""
    scores = found(loss, gradient(loss, SHARES, largest=largest), largest=largest)
    if loss == "softmax":
        shares = class_probabilities("softmax", scores[None, :])[0]
    else:
        shares = label_probabilities(loss, scores)
    np.testing.assert_allclose(shares, SHARES, rtol=1e-6)


def test_classes_that_noise_hides_keep_equal_intercepts():
    """Nearly all draws of noise alone change nothing."""
    rng = np.random.default_rng(0)
    stddev, scores = 50.0, []
    for _ in range(200):
        noise = np.column_stack([np.zeros(10), stddev * rng.normal(size=10)])
        scores.append(found("softmax", noise, stddev=stddev, n=1_000))
    unchanged = np.mean(~np.any(scores, axis=1))
    assert unchanged > 0.95


def test_a_class_without_records_gets_what_noise_may_hide():
    values = gradient("softmax", np.array([0.0, 1.0]))
    scores = found("softmax", values, stddev=1.0)
    share = class_probabilities("softmax", scores[None, :])[0, 0]
    assert share == pytest.approx(10.0 / 10_000, rel=0.01)


@pytest.mark.parametrize("n", [-50.0, 0.0, 3.0])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
def test_any_noisy_number_of_records_gives_finite_intercepts(loss, n):
    values = gradient(loss, SHARES, n=100)
    assert np.all(np.isfinite(found(loss, values, stddev=1.0, n=n)))
    assert np.all(np.isfinite(found(loss, 0.0 * values, stddev=1.0, n=n)))
