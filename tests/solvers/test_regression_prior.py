"""The part of a public guess that a noisy matrix of moments keeps."""

import numpy as np
import pytest

from privfeat.core.noise.release import Release
from privfeat.solvers.regression import NoisyRegression
from privfeat.solvers.regression_prior import PriorPart

SLOPES = np.array([0.5, -1.0, 0.3])


def prior_part(release, slopes, *, constant):
    return PriorPart(release, slopes, constant=constant).value


def moments(stddev, *, shift=0.0, seed=0):
    """Return those of 1,000 rows of three features, their target and a constant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000, 3)) + shift
    rows = np.column_stack([X, X @ SLOPES + 2.0, np.ones(1000)])
    noise = rng.normal(size=(5, 5)) * stddev
    value = rows.T @ rows + (noise + noise.T) / 2.0
    return Release("moments", value, stddev, symmetric=True)


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_part_is_one_of_the_truth_and_nothing_of_what_is_wrong(shift):
    """Means, which may hide that slopes are turned, are taken off."""
    release = moments(1.0, shift=shift)
    parts = [prior_part(release, m * SLOPES, constant=True) for m in (1.0, -1.0, 10.0)]
    np.testing.assert_allclose(parts, [1.0, 0.0, 0.1], atol=0.06)
    other = np.array([1.0, 0.5, 0.0])  # orthogonal to the truth
    assert prior_part(release, other, constant=True) < 0.1


def test_part_is_that_of_the_belief_where_noise_hides_all():
    parts = [
        prior_part(moments(1e9, seed=seed), SLOPES, constant=True) for seed in range(40)
    ]
    assert np.mean(parts) == pytest.approx(0.47, abs=0.1)
    assert np.max(parts) < 0.95


def test_part_follows_the_evidence_on_both_sides():
    """Of many releases the mean lies between belief and truth."""
    right, wrong = (
        np.mean(
            [
                prior_part(moments(300.0, seed=s), m * SLOPES, constant=True)
                for s in range(40)
            ]
        )
        for m in (1.0, -1.0)
    )
    assert right > 0.65
    assert wrong < 0.2


@pytest.mark.parametrize("best", [0.2, 0.9])
def test_part_moves_to_where_the_slope_says_that_the_loss_is_least(best):
    """Slope over curvature is the way, if both are beyond their noise."""
    release = moments(30.0)
    part = PriorPart(release, np.array([1.0, 0.5, 0.0]), constant=True)
    direction = np.array([*SLOPES, 0.0, 2.0])
    curvature = direction @ release.value @ direction
    for _ in range(5):
        slope = (best - part.value) * curvature
        part.learn(slope, 0.03 * curvature, direction)
    assert part.value == pytest.approx(best, abs=0.05)


def test_part_stays_where_a_slope_is_noise():
    part = PriorPart(moments(30.0), SLOPES, constant=True)
    before = part.value
    part.learn(1e6, 1e9, np.array([*SLOPES, 0.0, 2.0]))
    assert part.value == pytest.approx(before, abs=1e-3)


def test_part_is_finite_at_any_scale():
    for scale in (1e-200, 1e-20, 1e12):
        assert 0.0 <= prior_part(moments(1.0), scale * SLOPES, constant=True) <= 1.0


def test_part_of_rows_without_a_constant_takes_no_means_off():
    value = moments(1.0).value[:4, :4]
    release = Release("moments", value, 1.0, symmetric=True)
    slopes = np.linalg.solve(value[:3, :3], value[:3, 3])
    assert prior_part(release, slopes, constant=False) > 0.9


def test_corrections_begin_at_a_prior_that_the_matrix_bears_out():
    """Residuals are then zero, and sums that tell nothing leave it as it is."""
    release, asked = moments(1.0), []

    def residual_sums(direction):
        asked.append(direction)
        return Release("residual_sums", np.zeros((1, 5)), 1.0, symmetric=False)

    prior = np.array([*SLOPES, 2.0])
    regression = NoisyRegression(release, 3, 9.0, 1.0, prior=prior)
    coef = regression.corrected(residual_sums, n_steps=2, bound=1.0, noise_stddev=1.0)
    np.testing.assert_allclose(coef, prior, atol=0.02)
    alone = NoisyRegression(release, 3, 9.0, 1.0, prior=SLOPES)
    coef = alone.corrected(residual_sums, n_steps=2, bound=1.0, noise_stddev=1.0)
    np.testing.assert_allclose(coef, prior, atol=0.02)
    assert len(asked) == 4


def test_ridge_is_centred_at_the_prior():
    """A large one takes corrections back to it, where it took them back to zero."""
    release = moments(1.0)

    def residual_sums(direction):
        return Release("residual_sums", np.zeros((1, 5)), 1.0, symmetric=False)

    prior = np.array([*SLOPES, 2.0])
    given = {"n_steps": 5, "bound": 1.0, "noise_stddev": 1.0}
    found = [
        NoisyRegression(release, 3, 9.0, 1.0, ridge=1e5, prior=p).corrected(
            residual_sums, **given
        )
        for p in (prior, None)
    ]
    np.testing.assert_allclose(found[0], prior, atol=0.05)
    assert np.linalg.norm(found[1][:3]) < 0.1
