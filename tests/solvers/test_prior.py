"""The weight of a prior follows the evidence; without evidence it stays believed."""

import numpy as np
import pytest

from privfeat.core.noise.release import Release
from privfeat.solvers.prior import PriorWeight, _mean


@pytest.mark.parametrize(("sign", "noisy"), [(1.0, True), (-1.0, False), (1.0, False)])
def test_least_squares_take_the_prior_or_what_is_learned(draws, sign, noisy):
    """Where noise drowns all, the prior; without noise, the solution without it."""
    rows, labels, prior = draws
    stddev = 1e6 if noisy else 1e-6
    rng = np.random.default_rng(1)
    sums = np.eye(4)[labels].T @ rows + stddev * rng.normal(size=(4, 6))
    noise = rng.normal(size=(6, 6))
    matrix = rows.T @ rows + stddev * (noise + noise.T) / 2.0
    gram = Release("gram", matrix, stddev, True)
    options = {"loss": "squared", "row_norm": 1.0, "n_records": 3000}
    weight = PriorWeight(sign * prior, gram=gram, **options)
    ridge = 0.3 * stddev * np.sqrt(12)
    found = weight.least_squares(Release("sums", sums, stddev, False), ridge=ridge)
    wanted = prior if noisy else np.linalg.solve(matrix, sums.T).T
    best = np.argmax(rows @ wanted.T, axis=1)
    assert np.mean(np.argmax(rows @ found.T, axis=1) == best) > 0.9


def test_least_squares_need_a_gram_matrix(draws):
    weight = PriorWeight(draws[2], loss="squared", row_norm=1.0)
    with pytest.raises(TypeError, match="gram must be a release"):
        weight.least_squares(Release("sums", draws[2], 1.0, False), ridge=1.0)


def test_mean_of_a_belief_goes_from_the_belief_to_the_value():
    grid = np.linspace(0.0, 1.0, 101)
    belief = np.full(101, 1.0)
    assert _mean(grid, belief, 0.3, 1e9, 1.0) == pytest.approx(0.5)
    assert _mean(grid, belief, 0.3, 1e-3, 1.0) == pytest.approx(0.3)
    assert _mean(grid, belief, 0.6, 0.0, 2.0) == pytest.approx(0.3)
    assert _mean(grid, belief, -1e200, 0.0, 1.0) == 0.0


def test_matrix_that_is_nearly_exact_leaves_no_doubt(draws):
    rows, _, prior = draws
    gram = Release("gram", rows.T @ rows, 0.1, True)
    weight = PriorWeight(prior, loss="softmax", row_norm=1.0, gram=gram)
    exact = np.sum((prior @ gram.value) * prior)
    assert weight._own == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("n_records", [-30.0, 0.0])
def test_noise_may_leave_less_than_no_record(draws, n_records):
    """Curvature was then 1e-300, whose squares overflowed: the charged fit was lost."""
    prior = draws[2]
    gram = Release("gram", -10.0 * np.eye(6), 300.0, True)
    options = {"loss": "squared", "row_norm": 1.0, "gram": gram}
    weight = PriorWeight(prior, n_records=n_records, **options)
    released = Release("sums", 90.0 * prior, 300.0, False)
    assert np.all(np.isfinite(weight.least_squares(released, ridge=300.0)))
