"""The weight of a prior from gradients: that of what it adds to what is learned."""

import numpy as np
import pytest

from privfeat.core.noise.release import Release
from privfeat.solvers.prior_slope import SlopeWeight, bend


def spread(rows, coef):
    return np.sqrt(np.mean((rows @ coef.T) ** 2))


def followed(rows, labels, prior, *, with_gram, stddev=1.0, n_steps=20, rate=0.0):
    """Return the weight, and what small noisy steps have learned beside it."""
    gram = Release("gram", rows.T @ rows, 0.0, True) if with_gram else None
    options = {"loss": "softmax", "row_norm": 1.0, "n_records": len(rows)}
    weight = SlopeWeight(prior, gram=gram, **options)
    learned = np.zeros_like(prior)
    for seed in range(n_steps):
        coef = weight.at * prior + learned
        released = gradient(rows, labels, coef, stddev, seed)
        moved = learned - rate * released.value
        weight.update(released, learned, moved)
        learned = moved
    return weight, learned


def gradient(rows, labels, coef, stddev=0.0, seed=0):
    scores = np.exp(rows @ coef.T)
    residuals = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(coef))[labels]
    value = residuals.T @ rows
    value += stddev * np.random.default_rng(seed).normal(size=value.shape)
    return Release("gradient", value, stddev, False)


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


def test_noise_that_was_learned_is_no_evidence_for_it():
    """Its gradients point where it was learned; only other ones are asked.

    The mean of 40 is off by more than 6 of its standard errors once in 1e9.
    """
    rng, prior = np.random.default_rng(0), np.eye(4, 50)
    found: list[list[float]] = [[], []]
    for _ in range(40):
        weight = SlopeWeight(prior, loss="softmax", row_norm=1.0, n_records=1e-9)
        learned = np.zeros_like(prior)
        for _ in range(12):
            noise = Release("gradient", rng.normal(size=prior.shape), 1.0, False)
            moved = learned - 1e-3 * noise.value
            weight.update(noise, learned, moved)
            learned = moved
        total, _, here, _, squares = weight._sums
        found[0].append(here / np.sqrt(squares))
        rest = weight._learned / total - weight._step
        found[1].append(np.sum(weight._first * rest) / np.linalg.norm(rest))
    assert np.all(np.abs(np.mean(found, axis=1)) < 6.0 / np.sqrt(40))


def test_gradients_are_taken_without_the_prior_but_the_second(draws):
    """So what is learned beside a worthless prior is what is learned without one."""
    rows, labels, prior = draws
    weight = SlopeWeight(prior, loss="softmax", row_norm=1.0, n_records=3000)
    at, nothing = [], np.zeros_like(prior)
    for _ in range(5):
        at.append(weight.at)
        weight.update(gradient(rows, labels, weight.at * prior), nothing, nothing)
    assert at[1] > 0.0
    assert [weight for step, weight in enumerate(at) if step != 1] == [0.0] * 4


def test_sure_prior_is_taken_in_once_more_is_learned(draws):
    """Then it keeps its weight, and what it has wrong is unlearned."""
    rows, labels, prior = draws
    weight, learned = followed(rows, labels, prior, with_gram=True, rate=3e-3)
    assert weight.at == weight.beside(learned) == weight.beside(2.0 * learned) > 0.0
    assert weight.at * spread(rows, prior) == pytest.approx(0.5, rel=0.1)


@pytest.mark.parametrize("with_gram", [True, False])
def test_prior_of_what_is_learned_adds_nothing(draws, with_gram):
    """Large scores bend the loss, and a right prior kept a weight for what was known.

    Without noise, at the best coefficients, whatever the curvature.
    """
    rows, labels, prior = draws
    best = np.zeros_like(prior)
    for _ in range(300):
        best = best - 4e-3 * gradient(rows, labels, best).value
    gram = Release("gram", rows.T @ rows, 0.0, True) if with_gram else None
    options = {"loss": "softmax", "row_norm": 1.0, "n_records": 3000, "gram": gram}
    weight = SlopeWeight(prior, **options)
    for _ in range(20):
        value = gradient(rows, labels, best + weight.at * prior, 1e-3)
        weight.update(value, best, best)
    assert weight.beside(best) * spread(rows, prior) < 0.02 * spread(rows, best)


@pytest.mark.parametrize("seed", range(5))
def test_curvature_that_noise_hides_is_no_evidence(seed):
    """Rows that a prior does not score were believed to lie as it does.

    What gradients beside it did not show of that was taken for labels that it knows.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=4000)
    rows = rng.normal(size=(4000, 200))
    rows[:, 0] += 3.0 * labels - 1.5
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    prior = np.zeros((2, 200))
    prior[1, 1:] = rng.normal(size=199) / 14.0
    prior[0] = -prior[1]
    options = {"loss": "softmax", "row_norm": 1.0, "n_records": 4000}
    gram = Release("gram", rows.T @ rows, 300.0, True)
    weight, learned = SlopeWeight(prior, gram=gram, **options), np.zeros_like(prior)
    for step in range(20):
        at = weight.at * prior + learned
        value = gradient(rows, labels, at, 25.0, 100 * seed + step)
        moved = learned - 2e-3 * value.value
        weight.update(value, learned, moved)
        learned = moved
    right = [
        np.mean(np.argmax(rows @ coef.T, axis=1) == labels)
        for coef in (learned, learned + weight.beside(learned) * prior)
    ]
    assert right[1] > right[0] - 0.01


@pytest.mark.parametrize("noisy", [300.0, 3000.0])
def test_second_step_tells_the_curvature(draws, noisy):
    """Better than a noisy matrix, from which its belief begins."""
    rows, labels, prior = draws
    noise = np.random.default_rng(0).normal(size=(6, 6))
    noise = (noise + noise.T) / 2.0 - np.eye(6) * np.trace(noise) / 6.0
    gram = Release("gram", rows.T @ rows + noisy * noise, noisy, True)
    options = {"loss": "softmax", "row_norm": 1.0, "n_records": 3000}
    weight, nothing = SlopeWeight(prior, gram=gram, **options), np.zeros_like(prior)
    for seed in range(3):
        value = gradient(rows, labels, weight.at * prior, 5.0, seed)
        weight.update(value, nothing, nothing)
    exact = np.sum((rows @ prior.T) ** 2)
    assert weight._own == pytest.approx(exact, rel=0.15)


@pytest.mark.parametrize("loss", ["softmax", "sigmoid", "squared"])
@pytest.mark.parametrize("n_outputs", [2, 10, 77])
def test_bend_is_the_mean_curvature(loss, n_outputs):
    """Within 5 % of a mean over draws, for scores of spread 1."""
    assert bend(n_outputs, 0.0, loss) == pytest.approx(1.0)
    if loss == "squared":
        return
    scores = np.random.default_rng(0).normal(size=(20000, n_outputs))
    if loss == "softmax":
        p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        base = (1.0 - 1.0 / n_outputs) / n_outputs
    else:
        p, base = 1.0 / (1.0 + np.exp(-scores)), 0.25
    wanted = np.mean(p * (1.0 - p)) / base
    assert bend(n_outputs, 1.0, loss) == pytest.approx(wanted, rel=0.05)


@pytest.mark.parametrize("n_records", [3000, None])
def test_matrix_of_noise_hides_no_evidence(draws, n_records):
    """Its noise left the curvature at nothing, and a wrong prior its full weight."""
    rows, labels, prior = draws
    exact = rows.T @ rows
    found = np.sum((prior @ exact) * prior) / np.linalg.norm(prior.T @ prior) ** 2
    unlucky = exact - 1.1 * found * prior.T @ prior  # curvature below nothing
    gram = Release("gram", unlucky, 600.0, True)
    options = {"loss": "softmax", "row_norm": 1.0, "gram": gram}
    weight = SlopeWeight(-prior, n_records=n_records, **options)
    nothing = np.zeros_like(prior)
    for seed in range(20):
        value = gradient(rows, labels, -weight.at * prior, 20.0, seed)
        weight.update(value, nothing, nothing)
    believed = SlopeWeight(-prior, n_records=n_records, **options)
    believed.update(Release("gradient", nothing, 1e9, False), nothing, nothing)
    assert weight.beside(nothing) < 0.1 * believed.beside(nothing)


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
    weight = SlopeWeight(prior, n_records=n_records, **options)
    released = Release("sums", 90.0 * prior, 300.0, False)
    nothing = np.zeros_like(prior)
    weight.update(released, nothing, -1e-3 * prior)
    weight.update(released, -1e-3 * prior, nothing)
    assert np.isfinite(weight.beside(-1e-3 * prior))
