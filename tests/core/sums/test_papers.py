"""Exact sums equal those of the papers, and stay within their bounds."""

import numpy as np
import pytest

from privfeat.core.bounds import sensitivity
from privfeat.core.sums.records import CHUNK_ROWS
from privfeat.core.sums.statistics import exact_class_sums, exact_gradient, exact_gram
from tests import reference
from tests.core.grids import LIMIT, STEP, bounded, class_gram_stack, curvature_stack


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
@pytest.mark.parametrize("clip_norm", [0.2, 10.0])
def test_exact_gradient_equals_the_papers(grid_rows, loss, clip_norm, private):
    rows, labels = bounded(50, 4)
    coef = np.random.default_rng(1).normal(size=(3, 4))
    found = exact_gradient(
        grid_rows(rows, labels, step=STEP, private=private),
        coef,
        loss=loss,
        clip_norm=clip_norm,
    ).value
    expected = reference.gradient_sum(
        rows * STEP,
        labels,
        coef,
        loss,
        clip_norm=clip_norm if private else np.inf,
        residual_radius=2.0 if private and loss == "squared" else np.inf,
    )
    np.testing.assert_allclose(found, expected, atol=50 * 5e-6)


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_exact_curvature_grams_equal_the_papers(grid_rows, loss, private):
    rows, labels = bounded(50, 4)
    coef = np.random.default_rng(1).normal(size=(3, 4))
    part = grid_rows(rows, labels, step=STEP, private=private)
    expected = reference.hessian_blocks(rows * STEP, coef, loss)
    np.testing.assert_allclose(
        curvature_stack(part, coef, loss), expected, atol=50 * 5e-6
    )


@pytest.mark.parametrize("private", [True, False])
def test_exact_gram_equals_the_papers(grid_rows, private):
    rows, labels = bounded(50, 4)
    part = grid_rows(rows, labels, step=STEP, private=private)
    expected = reference.gram(rows * STEP)
    np.testing.assert_allclose(exact_gram(part).value, expected, rtol=1e-5)


@pytest.mark.parametrize("private", [True, False])
def test_exact_class_sums_equal_the_papers(grid_rows, private):
    rows, labels = bounded(50, 4)
    part = grid_rows(rows, labels, step=STEP, private=private)
    expected = [(rows * STEP)[labels == label].sum(axis=0) for label in range(3)]
    np.testing.assert_allclose(exact_class_sums(part, 3).value, expected, rtol=1e-5)


@pytest.mark.parametrize("private", [True, False])
def test_exact_class_grams_equal_the_papers(grid_rows, private):
    rows, labels = bounded(50, 4)
    part = grid_rows(rows, labels, step=STEP, private=private)
    expected = reference.class_grams(rows * STEP, labels, 3)
    np.testing.assert_allclose(class_gram_stack(part, 3), expected, rtol=1e-6)


@pytest.mark.parametrize("clip_norm", [0.05, 0.5, 3.0])
def test_exact_gram_clips_further_as_the_paper_does(grid_rows, clip_norm):
    rows, labels = bounded(50, 4)
    found = exact_gram(grid_rows(rows, labels, step=STEP), clip_norm=clip_norm).value
    clipped = [reference.clip(row * STEP, clip_norm) for row in rows]
    expected = reference.gram(np.array(clipped))
    np.testing.assert_allclose(found, expected, atol=50 * 2e-5 * clip_norm**2)


@pytest.mark.parametrize("clip_norm", [0.05, 0.3, 1.0])
def test_exact_gram_of_one_record_is_within_its_clip_norm(grid_rows, clip_norm):
    for row in bounded(20, 4)[0]:
        part = grid_rows(row[None, :], np.zeros(1), step=STEP)
        found = exact_gram(part, clip_norm=clip_norm).value
        assert np.trace(found) <= clip_norm**2


@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0, 1e5])
@pytest.mark.parametrize("n_outputs", [2, 3, 10, 200])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_one_records_statistics_are_within_their_bounds(
    grid_rows, loss, n_outputs, scale
):
    """Predictions from uniform to one-hot, from 2 to 200 classes."""
    rows, _ = bounded(2, 3)
    rng = np.random.default_rng(n_outputs)
    for row in rows:
        coef = rng.normal(size=(n_outputs, 3)) * scale
        part = grid_rows(row[None, :], np.array([n_outputs - 1]), step=STEP)
        bound = sensitivity.curvature_grams(1.0, loss, n_outputs, "add_remove")
        assert np.linalg.norm(curvature_stack(part, coef, loss)) <= bound
        radius = sensitivity.residual_norm(loss, n_outputs)
        gradient = exact_gradient(part, coef, loss=loss, clip_norm=radius).value
        bound = sensitivity.loss_gradient(1.0, loss, n_outputs, "add_remove")
        assert np.linalg.norm(gradient) <= bound
        gradient = exact_gradient(part, coef, loss=loss, clip_norm=0.01).value
        assert np.linalg.norm(gradient) <= 0.01


@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
def test_exact_gradient_clips_residuals_of_short_rows_too(grid_rows, loss):
    """A row of a tenth of the bound; the clip of gradients would allow ten times."""
    row, coef = np.array([[LIMIT // 10, 0, 0]]), np.array([[1e4], [-1e4], [0.0]])
    part = grid_rows(row, np.array([1]), step=STEP)
    options = {"loss": loss, "clip_norm": 0.8}
    for bound, expected in [(0.8, 0.8), (np.inf, sensitivity.residual_norm(loss, 3))]:
        found = exact_gradient(
            part, coef * np.eye(1, 3), residual_clip_norm=bound, **options
        ).value
        assert np.linalg.norm(found) <= expected * row[0, 0] * STEP
        assert np.linalg.norm(found) > 0.8 * expected * row[0, 0] * STEP


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300, 1e38])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_exact_gradient_stays_bounded_for_any_coefficients(grid_rows, loss, bad):
    """Earlier noise may have made them huge."""
    rows, labels = bounded(1, 3)
    coef = np.full((3, 3), bad)
    coef[1] *= -1.0
    part = grid_rows(rows, labels, step=STEP)
    gradient = exact_gradient(part, coef, loss=loss, clip_norm=0.5).value
    assert np.linalg.norm(gradient) <= 0.5


def test_exact_gradient_counts_the_sampled_records_only(grid_rows):
    rows, labels = bounded(30, 3)
    coef = np.random.default_rng(1).normal(size=(3, 3))
    taken = np.zeros(CHUNK_ROWS, bool)
    taken[:30] = np.random.default_rng(2).random(30) < 0.4
    found = exact_gradient(
        grid_rows(rows, labels, step=STEP),
        coef,
        loss="softmax",
        clip_norm=0.5,
        sampler=lambda n: taken[:n],
    ).value
    kept = taken[:30]
    expected = exact_gradient(
        grid_rows(rows[kept], labels[kept], step=STEP),
        coef,
        loss="softmax",
        clip_norm=0.5,
    ).value
    np.testing.assert_array_equal(found, expected)
