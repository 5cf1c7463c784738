"""Releases are shrunk towards what public rows tell, as far as evidence goes."""

import numpy as np
import pytest
from scipy.optimize import nnls

from privfeat.core.noise.release import Release
from privfeat.solvers.public import SignalFilter, _fitted
from privfeat.solvers.spectrum import shrunk_towards

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


def quality(rows, signal, moment):
    """The score of the right classes in units of the spread of scores."""
    return np.sum(rows * signal) / np.sqrt(np.sum((rows @ moment) * rows))


@pytest.fixture
def concentrated(spectrum):
    """Directions, variances of a signal in the longest, and the moment of rows."""
    vectors, _, _ = spectrum
    values = 1.0 / np.sqrt(np.arange(1, SIZE + 1))
    return vectors, 10.0 * values**10, (vectors * values) @ vectors.T


def test_signal_in_public_directions_is_told_from_noise(concentrated):
    vectors, variances, moment = concentrated
    signal, noisy = drawn(vectors, variances, 1.0)
    found = SignalFilter(moment, np.eye(SIZE + 1)).added(release(noisy, 1.0))
    plain = quality(noisy[:, :-1], signal, moment)
    assert quality(found[:, :-1], signal, moment) > 1.05 * plain
    np.testing.assert_array_equal(found[:, -1], noisy[:, -1])


@pytest.mark.parametrize("kind", ["elsewhere", "nowhere", "everywhere", "alike"])
def test_sum_stays_where_filtering_it_is_not_shown_to_help(concentrated, kind):
    """Rows of another kind, noise alone, and signals that scores need unfiltered."""
    vectors, variances, moment = concentrated
    rng = np.random.default_rng(2)
    other = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0]
    vectors, variances = {
        "elsewhere": (other, variances),
        "nowhere": (other, 0.0),
        "everywhere": (vectors, 1.0),
        "alike": (vectors, 10.0 / np.sqrt(np.arange(1, SIZE + 1))),  # as the rows
    }[kind]
    _, noisy = drawn(vectors, variances, 1.0)
    found = SignalFilter(moment, np.eye(SIZE + 1)).added(release(noisy, 1.0))
    np.testing.assert_allclose(found, noisy, atol=0.01 * np.max(np.abs(noisy)))


def test_parts_add_up_to_the_filtered_sum(concentrated):
    vectors, variances, moment = concentrated
    _, noisy = drawn(vectors, variances, 1.0)
    parts = SignalFilter(moment, np.eye(SIZE))
    found = sum(parts.added(release(noisy / 4.0, 0.5)) for _ in range(4))
    whole = SignalFilter(moment, np.eye(SIZE)).added(release(noisy, 1.0))
    np.testing.assert_allclose(found, whole, atol=1e-12)


def test_sum_without_noise_or_without_public_directions_stays(spectrum):
    vectors, values, moment = spectrum
    _, noisy = drawn(vectors, values, 1.0)
    for matrix, stddev in ((moment, 0.0), (0.0 * moment, 1.0), (np.eye(SIZE), 1.0)):
        found = SignalFilter(matrix, np.eye(SIZE)).added(release(noisy, stddev))
        np.testing.assert_allclose(found, noisy, atol=1e-12)


def test_gains_follow_the_variances_of_a_strong_signal(spectrum):
    _, values, moment = spectrum
    filtering = SignalFilter(moment, np.eye(SIZE))
    found = filtering.gains(50.0 * np.sort(values) + 1.0, 1.0, 100)
    wanted = 50.0 * np.sort(values) / (50.0 * np.sort(values) + 1.0)
    np.testing.assert_allclose(found, (wanted / wanted.max()) ** 0.25, atol=1e-6)


def test_estimate_of_what_filtering_is_worth_has_no_bias_and_its_stated_error():
    """Over 4,000 draws of noise around one signal, with gains that are not fitted."""
    rng = np.random.default_rng(0)
    factor, size, outputs = rng.normal(size=(12, 12)), 12, 5
    inverse, gains = np.eye(size) + factor @ factor.T / 12, np.linspace(0.2, 1.0, 12)
    filtering = SignalFilter(np.diag(np.arange(1.0, 13.0)), inverse)
    signal = 3.0 * rng.normal(size=(outputs, size)) * gains
    wanted, found, errors = [], [], []
    for _ in range(4000):
        rows = signal + rng.normal(size=signal.shape)
        plain, filtered = rows @ inverse, (rows * gains) @ inverse
        spreads = [np.sqrt(np.sum(w**2 * filtering._shape)) for w in (filtered, plain)]
        wanted.append(np.sum(signal * (filtered / spreads[0] - plain / spreads[1])))
        better, error = filtering.advantage(rows, gains, 1.0)
        found.append(better)
        errors.append(error)
    missed = np.subtract(found, wanted)
    assert abs(np.mean(missed)) < 0.2 * np.mean(errors)
    assert 0.9 * np.std(missed) < np.mean(errors) < 1.1 * np.std(missed)


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


def test_a_matrix_that_is_not_definite_has_no_negative_variance():
    """Noise on all entries of a matrix, as the papers have it, leaves such inverses."""
    moment = np.diag([1.0, 0.01])
    raw = SignalFilter(moment, np.array([[0.1, 5.0, 0.0], [5.0, 0.1, 0.0], [0, 0, 1]]))
    rows, gains = np.array([[1e-3, 1e-3]]), np.array([1.0, 0.1])
    better, error = raw.advantage(rows, gains, 1.0)
    assert np.isfinite(better)
    assert error == 0.0
