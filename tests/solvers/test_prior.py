"""The weight of a prior follows the evidence; without evidence it stays believed."""

import numpy as np
import pytest

from privfeat.core.noise.release import Release
from privfeat.solvers.prior import PriorWeight, shrunk

TRUE = 4.0  # the weight by which labels are drawn


@pytest.fixture
def draws():
    """Unit rows, labels from a softmax of ``TRUE`` times the prior, and the prior."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 6))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    prior = rng.normal(size=(4, 6))
    prior -= prior.mean(axis=0)
    noise = rng.gumbel(size=(3000, 4))
    return rows, np.argmax(TRUE * rows @ prior.T + noise, axis=1), prior


def gradient(rows, labels, coef, stddev=0.0, seed=0):
    scores = np.exp(rows @ coef.T)
    residuals = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(coef))[labels]
    value = residuals.T @ rows
    value += stddev * np.random.default_rng(seed).normal(size=value.shape)
    return Release("gradient", value, stddev, False)


def followed(rows, labels, prior, *, with_gram, stddev=1.0, n_steps=30):
    gram = Release("gram", rows.T @ rows, 0.0, True) if with_gram else None
    weight = PriorWeight(prior, loss="softmax", row_norm=1.0, gram=gram)
    nothing = np.zeros_like(prior)
    for seed in range(n_steps):
        weight.update(gradient(rows, labels, weight.at * prior, stddev, seed), nothing)
    return weight


@pytest.mark.parametrize("with_gram", [True, False])
def test_weight_is_found(draws, with_gram):
    rows, labels, prior = draws
    weight = followed(rows, labels, prior, with_gram=with_gram)
    assert weight.value == pytest.approx(TRUE, rel=0.2)


@pytest.mark.parametrize("with_gram", [True, False])
def test_scale_of_a_prior_has_no_meaning(draws, with_gram):
    rows, labels, prior = draws
    one = followed(rows, labels, prior, with_gram=with_gram)
    other = followed(rows, labels, 7.0 * prior, with_gram=with_gram)
    assert 7.0 * other.value == pytest.approx(one.value, rel=1e-6)


@pytest.mark.parametrize("with_gram", [True, False])
def test_wrong_prior_has_no_weight(draws, with_gram):
    rows, labels, prior = draws
    assert followed(rows, labels, -prior, with_gram=with_gram).value == 0.0


@pytest.mark.parametrize("with_gram", [True, False])
def test_noise_leaves_the_belief(draws, with_gram):
    rows, labels, prior = draws
    weight = followed(rows, labels, prior, with_gram=with_gram, stddev=1e9)
    unit = np.sqrt(np.mean((rows @ prior.T) ** 2))
    assert weight.value * unit > 2.0


@pytest.mark.parametrize("with_gram", [True, False])
def test_without_noise_a_prior_that_is_right_gets_its_weight(draws, with_gram):
    """Two exact estimates in a row were a division by zero."""
    rows, labels, prior = draws
    found = followed(rows, labels, prior, with_gram=with_gram, stddev=0.0)
    assert found.value == pytest.approx(TRUE, rel=0.3)


def test_one_step_keeps_the_belief_without_a_gram_matrix(draws):
    rows, labels, prior = draws
    assert followed(rows, labels, prior, with_gram=False, n_steps=1).value > 0.0


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
    weight = PriorWeight(sign * prior, loss="squared", row_norm=1.0, gram=gram)
    ridge = 0.3 * stddev * np.sqrt(12)
    found = weight.least_squares(Release("sums", sums, stddev, False), ridge=ridge)
    wanted = prior if noisy else np.linalg.solve(matrix, sums.T).T
    best = np.argmax(rows @ wanted.T, axis=1)
    assert np.mean(np.argmax(rows @ found.T, axis=1) == best) > 0.9


def test_least_squares_need_a_gram_matrix(draws):
    weight = PriorWeight(draws[2], loss="squared", row_norm=1.0)
    with pytest.raises(TypeError, match="gram must be a release"):
        weight.least_squares(Release("sums", draws[2], 1.0, False), ridge=1.0)


def test_shrunk_is_smooth_and_never_negative():
    assert shrunk(2.0, 0.0) == 2.0
    assert shrunk(2.0, 2.0) == 1.0
    assert shrunk(1.0, 2.0) == shrunk(-1.0, 0.0) == shrunk(0.0, 0.0) == 0.0


@pytest.mark.parametrize(("n_records", "falls"), [(3000, True), (None, False)])
def test_matrix_of_noise_hides_no_evidence(draws, n_records, falls):
    """Its noise left the curvature at nothing, and a wrong prior its full weight."""
    rows, labels, prior = draws
    exact = rows.T @ rows
    found = np.sum((prior @ exact) * prior) / np.linalg.norm(prior.T @ prior) ** 2
    unlucky = exact - 1.1 * found * prior.T @ prior  # curvature below nothing
    gram = Release("gram", unlucky, 600.0, True)
    options = {"loss": "softmax", "row_norm": 1.0, "gram": gram}
    weight = PriorWeight(-prior, n_records=n_records, **options)
    believed, nothing = weight.value, np.zeros_like(prior)
    for seed in range(20):
        value = gradient(rows, labels, -weight.at * prior, 20.0, seed)
        weight.update(value, nothing)
    assert (weight.value < 0.1 * believed) == falls


def test_matrix_that_is_nearly_exact_leaves_no_doubt(draws):
    rows, _, prior = draws
    gram = Release("gram", rows.T @ rows, 0.1, True)
    weight = PriorWeight(prior, loss="softmax", row_norm=1.0, gram=gram)
    exact = np.sum((prior @ gram.value) * prior)
    assert weight._own == pytest.approx(exact, rel=0.02)
    assert weight._doubt < 1e-3


@pytest.mark.parametrize("n_records", [-30.0, 0.0])
@pytest.mark.parametrize("loss", ["softmax", "squared"])
def test_noise_may_leave_less_than_no_record(draws, n_records, loss):
    """Curvature was then 1e-300, whose squares overflowed: the charged fit was lost."""
    prior = draws[2]
    gram = Release("gram", -10.0 * np.eye(6), 300.0, True)
    options = {"loss": loss, "row_norm": 1.0, "gram": gram}
    weight = PriorWeight(prior, n_records=n_records, **options)
    believed, released = weight.value, Release("sums", 90.0 * prior, 300.0, False)
    if loss == "softmax":
        weight.update(released, np.zeros_like(prior))
        weight.update(released, prior)
    else:
        assert np.all(np.isfinite(weight.least_squares(released, ridge=300.0)))
    assert weight.value == pytest.approx(believed, rel=0.05)
