"""The weight of a prior follows the evidence; without evidence it stays believed."""

import numpy as np
import pytest

from privfeat.core.noise.release import Release
from privfeat.solvers.beliefs import belief
from privfeat.solvers.prior import PriorWeight
from privfeat.solvers.prior_least_squares import prior_least_squares

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


def followed(
    rows, labels, prior, *, with_gram, stddev=1.0, n_steps=20, rate=0.0, varied=1.0
):
    """Return the weight, and what small noisy steps have learned beside it."""
    gram = Release("gram", rows.T @ rows, 0.0, True) if with_gram else None
    options = {"loss": "softmax", "row_norm": 1.0, "n_records": len(rows)}
    options["varied"] = varied
    weight = PriorWeight(prior, gram=gram, **options)
    learned = np.zeros_like(prior)
    for seed in range(n_steps):
        coef = weight.at * prior + learned
        released = gradient(rows, labels, coef, stddev, seed)
        moved = learned - rate * released.value
        weight.update(released, learned, moved)
        learned = moved
    return weight, learned


def spread(rows, coef):
    return np.sqrt(np.mean((rows @ coef.T) ** 2))


@pytest.mark.parametrize("with_gram", [True, False])
def test_best_combination_is_found(draws, with_gram):
    """That of least squares on the labels, which the fit does not see."""
    rows, labels, prior = draws
    weight, learned = followed(
        rows, labels, prior, with_gram=with_gram, stddev=200.0, rate=3e-4
    )
    scores = np.stack([(rows @ coef.T).ravel() for coef in (prior, learned)])
    wanted = np.linalg.solve(scores @ scores.T, scores @ np.eye(4)[labels].ravel())
    ratio = weight.beside(learned) * wanted[1] / wanted[0]
    assert 0.25 < ratio < 4.0


@pytest.mark.parametrize("with_gram", [True, False])
def test_scale_of_a_prior_has_no_meaning(draws, with_gram):
    rows, labels, prior = draws
    one, learned = followed(rows, labels, prior, with_gram=with_gram, rate=1e-4)
    other, same = followed(rows, labels, 7.0 * prior, with_gram=with_gram, rate=1e-4)
    ratio = other.beside(same) / one.beside(learned)
    assert 7.0 * ratio == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("with_gram", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_worthless_prior_has_next_to_no_weight(draws, with_gram, seed):
    rows, labels, prior = draws
    labels = np.random.default_rng(seed).permutation(4)[labels]
    wrong = prior[[1, 0, 3, 2]] if seed else -prior
    wrong = wrong if np.sum((rows @ wrong.T)[range(3000), labels]) < 0 else -wrong
    weight, learned = followed(rows, labels, wrong, with_gram=with_gram, rate=1e-3)
    moved = weight.beside(learned) * spread(rows, wrong)
    assert moved < 0.05 * spread(rows, learned)


@pytest.mark.parametrize("with_gram", [True, False])
@pytest.mark.parametrize("n_steps", [1, 12])
def test_prior_stays_where_noise_drowns_all(draws, with_gram, n_steps):
    rows, labels, prior = draws
    weight, learned = followed(
        rows, labels, prior, with_gram=with_gram, stddev=1e7, n_steps=n_steps, rate=1e-8
    )
    moved = weight.beside(learned) * spread(rows, prior)
    assert moved > 5.0 * spread(rows, learned)


def test_rows_with_much_in_common_leave_more_to_a_prior(draws):
    """Noise moves such rows as any; the prior hardly varies there."""
    rows, labels, prior = draws
    many, few = (
        followed(
            *(rows, labels, prior),
            with_gram=False,
            stddev=500.0,
            rate=1e-4,
            varied=varied,
        )
        for varied in (1.0, 0.1)
    )
    assert few[0].beside(few[1]) > 1.5 * many[0].beside(many[1])


def test_noise_that_was_learned_is_no_evidence_for_it():
    """Its gradients point where it was learned; only later ones are asked."""
    rng, prior = np.random.default_rng(0), np.eye(4, 50)
    found, error = [], []
    for _ in range(40):
        weight = PriorWeight(prior, loss="softmax", row_norm=1.0, n_records=1e-9)
        learned = np.zeros_like(prior)
        for _ in range(12):
            noise = Release("gradient", rng.normal(size=prior.shape), 1.0, False)
            moved = learned - 1e-3 * noise.value
            weight.update(noise, learned, moved)
            learned = moved
        found.append(weight._found_learned)
        error.append(np.sqrt(weight._noise_learned))
    assert abs(np.mean(found)) < 4.0 * np.mean(error) / np.sqrt(40)


@pytest.mark.parametrize(("with_gram", "most"), [(True, 0.45), (False, 1.0)])
def test_gradients_are_taken_beside_little_of_a_prior(draws, with_gram, most):
    """At spread 1, with a Gram matrix, what a prior has wrong was not unlearned."""
    rows, prior = draws[0], draws[2]
    nothing = np.zeros_like(prior)
    gram = Release("gram", rows.T @ rows, 0.0, True) if with_gram else None
    options = {"loss": "softmax", "row_norm": 1.0, "n_records": len(rows)}
    weight = PriorWeight(prior, gram=gram, **options)
    weight.update(Release("gradient", -1e6 * prior, 1.0, False), nothing, nothing)
    assert weight.beside(nothing) > weight.at
    assert weight.at * weight.unit == pytest.approx(most)


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
    found = prior_least_squares(
        weight, Release("sums", sums, stddev, False), ridge=ridge
    )
    wanted = prior if noisy else np.linalg.solve(matrix, sums.T).T
    best = np.argmax(rows @ wanted.T, axis=1)
    assert np.mean(np.argmax(rows @ found.T, axis=1) == best) > 0.9


def test_least_squares_without_noise_are_a_ridge_around_the_prior(draws):
    """Of half-wrong ones as well: what the prior leaves to learn is added whole."""
    rows, labels, prior = draws
    prior = prior + np.random.default_rng(3).normal(size=prior.shape)
    prior -= prior.mean(axis=0)
    targets = np.eye(4)[labels]
    sums, gram = targets.T @ rows, rows.T @ rows
    sums -= sums.mean(axis=0)
    weight = PriorWeight(
        prior, loss="squared", row_norm=1.0, gram=Release("gram", gram, 0.0, True)
    )
    found = prior_least_squares(weight, Release("sums", sums, 1e-9, False), ridge=200.0)
    around = np.linalg.inv(gram + 200.0 * np.eye(6))
    alone, moved = sums @ around, prior - prior @ gram @ around
    part = np.sum((found - alone) * moved) / np.sum(moved**2)
    assert 0.0 < part < TRUE
    np.testing.assert_allclose(found, alone + part * moved, rtol=1e-6)


def test_least_squares_need_a_gram_matrix(draws):
    weight = PriorWeight(draws[2], loss="squared", row_norm=1.0)
    with pytest.raises(TypeError, match="gram must be a release"):
        prior_least_squares(weight, Release("sums", draws[2], 1.0, False), ridge=1.0)


def test_mean_of_a_belief_goes_from_the_belief_to_the_value():
    grid = np.linspace(0.0, 1.0, 101)
    chances = np.full(101, 1.0)
    assert belief(grid, chances, 0.3, 1e9, 1.0) == pytest.approx(0.5)
    assert belief(grid, chances, 0.3, 1e-3, 1.0) == pytest.approx(0.3)
    assert belief(grid, chances, 0.6, 0.0, 2.0) == pytest.approx(0.3)
    assert belief(grid, chances, -1e200, 0.0, 1.0) == 0.0


@pytest.mark.parametrize("n_records", [3000, None])
def test_matrix_of_noise_hides_no_evidence(draws, n_records):
    """Its noise left the curvature at nothing, and a wrong prior its full weight."""
    rows, labels, prior = draws
    exact = rows.T @ rows
    found = np.sum((prior @ exact) * prior) / np.linalg.norm(prior.T @ prior) ** 2
    unlucky = exact - 1.1 * found * prior.T @ prior  # curvature below nothing
    gram = Release("gram", unlucky, 600.0, True)
    options = {"loss": "softmax", "row_norm": 1.0, "gram": gram}
    weight = PriorWeight(-prior, n_records=n_records, **options)
    nothing = np.zeros_like(prior)
    for seed in range(20):
        value = gradient(rows, labels, -weight.at * prior, 20.0, seed)
        weight.update(value, nothing, nothing)
    believed = PriorWeight(-prior, n_records=n_records, **options)
    believed.update(Release("gradient", nothing, 1e9, False), nothing, nothing)
    assert weight.beside(nothing) < 0.1 * believed.beside(nothing)


def test_matrix_that_is_nearly_exact_leaves_no_doubt(draws):
    rows, _, prior = draws
    gram = Release("gram", rows.T @ rows, 0.1, True)
    weight = PriorWeight(prior, loss="softmax", row_norm=1.0, gram=gram)
    exact = np.sum((prior @ gram.value) * prior)
    assert weight.own == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("with_gram", [True, False])
def test_without_noise_the_weight_is_finite(draws, with_gram):
    """Two exact estimates in a row were a division by zero."""
    rows, labels, prior = draws
    weight, learned = followed(
        rows, labels, prior, with_gram=with_gram, stddev=0.0, rate=1e-4
    )
    assert 0.0 < weight.beside(learned) < 100.0


@pytest.mark.parametrize("n_records", [-30.0, 0.0])
@pytest.mark.parametrize("loss", ["softmax", "squared"])
def test_noise_may_leave_less_than_no_record(draws, n_records, loss):
    """Curvature was then 1e-300, whose squares overflowed: the charged fit was lost."""
    prior = draws[2]
    gram = Release("gram", -10.0 * np.eye(6), 300.0, True)
    options = {"loss": loss, "row_norm": 1.0, "gram": gram}
    weight = PriorWeight(prior, n_records=n_records, **options)
    released = Release("sums", 90.0 * prior, 300.0, False)
    nothing = np.zeros_like(prior)
    weight.update(released, nothing, -1e-3 * prior)
    weight.update(released, -1e-3 * prior, nothing)
    assert np.isfinite(weight.beside(-1e-3 * prior))
    assert np.all(np.isfinite(prior_least_squares(weight, released, ridge=300.0)))
