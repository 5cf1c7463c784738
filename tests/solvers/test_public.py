"""Releases are shrunk towards what public rows tell, as far as evidence goes."""

import numpy as np
import pytest
from scipy.optimize import nnls

from privfeat.core.noise.release import Release
from privfeat.solvers.public import SignalFilter, _fitted, shrunk_towards

SIZE, OUTPUTS = 40, 6


def release(value, stddev):
    return Release("gradient", value, stddev, False)


@pytest.fixture
def spectrum():
    """Directions, a few of which rows mostly lie in, and their second moment."""
    rng = np.random.default_rng(1)
    vectors = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0]
    values = 1.0 / np.arange(1, SIZE + 1) ** 2
    return vectors, values, (vectors * values) @ vectors.T


def drawn(vectors, variances, stddev, seed=0):
    """A signal with these variances, and its sum with noise and a constant column."""
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=(OUTPUTS, SIZE)) * np.sqrt(variances) @ vectors.T
    noisy = signal + stddev * rng.normal(size=signal.shape)
    return signal, np.column_stack([noisy, np.arange(OUTPUTS, dtype=float)])


def test_signal_in_public_directions_is_told_from_noise(spectrum):
    vectors, values, moment = spectrum
    signal, noisy = drawn(vectors, 100.0 * values, 1.0)
    found = SignalFilter(moment).added(release(noisy, 1.0))
    scale = np.sum(found[:, :-1] * signal) / np.sum(found[:, :-1] ** 2)
    error = np.linalg.norm(scale * found[:, :-1] - signal)
    assert error < 0.7 * np.linalg.norm(noisy[:, :-1] - signal)
    np.testing.assert_array_equal(found[:, -1], noisy[:, -1])


@pytest.mark.parametrize("kind", ["elsewhere", "nowhere", "everywhere"])
def test_sum_stays_without_evidence(spectrum, kind):
    """Rows of another kind, noise alone, and a signal in all directions alike."""
    _, values, moment = spectrum
    other = np.linalg.qr(np.random.default_rng(2).normal(size=(SIZE, SIZE)))[0]
    variances = {"elsewhere": 100.0 * values, "nowhere": 0.0, "everywhere": 1.0}[kind]
    _, noisy = drawn(other, variances, 1.0)
    found = SignalFilter(moment).added(release(noisy, 1.0))
    np.testing.assert_allclose(found, noisy, atol=0.15 * np.max(np.abs(noisy)))


def test_parts_add_up_to_the_filtered_sum(spectrum):
    vectors, values, moment = spectrum
    _, noisy = drawn(vectors, 100.0 * values, 1.0)
    parts = SignalFilter(moment)
    found = sum(parts.added(release(noisy / 4.0, 0.5)) for _ in range(4))
    whole = SignalFilter(moment).added(release(noisy, 1.0))
    np.testing.assert_allclose(found, whole, atol=1e-12)


def test_sum_without_noise_or_without_public_directions_stays(spectrum):
    vectors, values, moment = spectrum
    _, noisy = drawn(vectors, values, 1.0)
    for matrix, stddev in ((moment, 0.0), (0.0 * moment, 1.0), (np.eye(SIZE), 1.0)):
        found = SignalFilter(matrix).added(release(noisy, stddev))
        np.testing.assert_allclose(found, noisy, atol=1e-12)


def test_gains_follow_the_variances_of_a_strong_signal(spectrum):
    _, values, moment = spectrum
    found = SignalFilter(moment).gains(50.0 * np.sort(values) + 1.0, 1.0, 100)
    wanted = 50.0 * np.sort(values) / (50.0 * np.sort(values) + 1.0)
    np.testing.assert_allclose(found, wanted / wanted.max(), atol=1e-6)


def test_mean_is_shrunk_towards_zero_as_without_public_rows():
    total = np.arange(5.0)
    shrink = 1.0 - 5 * 0.25 / (total @ total)
    np.testing.assert_array_equal(shrunk_towards(total, 0.5), total * shrink)
    np.testing.assert_array_equal(shrunk_towards(total, 9.0), 0.0 * total)
    zero = shrunk_towards(total, 0.5, np.zeros(5))
    np.testing.assert_array_equal(zero, total * shrink)


def test_mean_keeps_the_part_of_a_target_that_it_shows():
    target = np.ones(100)
    noise = np.random.default_rng(0).normal(size=100)
    found = shrunk_towards(target + 2.0 * noise, 2.0, target)
    assert np.linalg.norm(found - target) < 0.5 * np.linalg.norm(2.0 * noise)
    against = shrunk_towards(2.0 * noise - target, 2.0, target)
    np.testing.assert_array_equal(against, shrunk_towards(2.0 * noise - target, 2.0))


def test_mean_without_noise_is_itself():
    total, target = np.arange(4.0), np.array([1.0, 0.0, 0.0, 5.0])
    np.testing.assert_allclose(shrunk_towards(total, 0.0, target), total)


@pytest.mark.parametrize("seed", range(8))
def test_parts_of_the_variance_are_least_squares_that_are_not_negative(seed):
    rng = np.random.default_rng(seed)
    shape, weights = rng.exponential(size=30) ** 3, rng.uniform(0.1, 1.0, size=30)
    wanted = shape * rng.normal() + rng.normal() + rng.normal(size=30)
    parts, roots = np.stack([shape, np.ones(30)], axis=1), np.sqrt(weights)
    found, _ = nnls(parts * roots[:, None], wanted * roots)
    np.testing.assert_allclose(
        _fitted(shape, wanted, weights), parts @ found, atol=1e-9
    )
