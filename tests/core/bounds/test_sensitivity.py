"""Declared bounds against the largest change found by trying records.

A record is a row of norm at most ``C`` with weights; contributions of one record, or
differences of two, are formed explicitly and must stay below the declared bound. Where
the bound is said to be attained, some record must come within a relative 1e-6 of it.
"""

import itertools
import math

import numpy as np
import pytest

from privfeat.core.bounds import sensitivity

ADJACENCIES = ["add_remove", "replace_one"]
CLIP_NORMS = [1e-6, 0.7, 1.0, 1e6]
N_OUTPUTS = [1, 2, 3, 10, 150, 1000]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def rows_in_ball(rng, clip_norm, size=3):
    """Random and extreme rows: axes, their opposites, zero, a diagonal."""
    axes = np.eye(size)
    rows = [*axes, *-axes, np.zeros(size), np.ones(size) / math.sqrt(size)]
    for _ in range(8):
        direction = rng.normal(size=size)
        rows.append(direction / np.linalg.norm(direction) * rng.uniform(0.5, 1.0))
    return clip_norm * np.array(rows)


def largest_change(contributions, adjacency):
    if adjacency == "add_remove":
        return max(np.linalg.norm(item) for item in contributions)
    return max(
        np.linalg.norm(one - two)
        for one, two in itertools.combinations(contributions, 2)
    )


def probabilities(rng, n_outputs):
    """Softmax outputs: one-hot, uniform over few or all classes, Dirichlet draws."""
    found = [np.full(n_outputs, 1.0 / n_outputs)]
    for support in (1, 2, 3, 4):
        if support <= n_outputs:
            p = np.zeros(n_outputs)
            p[:support] = 1.0 / support
            found += [p, p[::-1].copy()]
    for concentration in (0.01, 0.1, 1.0, 10.0):
        found += list(rng.dirichlet(np.full(n_outputs, concentration), size=5))
    return found


@pytest.mark.parametrize("clip_norm", CLIP_NORMS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_gram_bound_holds_and_is_attained(rng, clip_norm, adjacency):
    rows = rows_in_ball(rng, clip_norm)
    observed = largest_change([np.outer(x, x) for x in rows], adjacency)
    declared = sensitivity.gram(clip_norm, adjacency)
    assert declared * (1 - 1e-6) < observed <= declared


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_gram_bound_is_the_closed_form(adjacency):
    factor = math.sqrt(2.0) if adjacency == "replace_one" else 1.0
    expected = 9.0 * factor * (1.0 + 2.0**-20)  # the margin for rounding
    assert sensitivity.gram(3.0, adjacency) == pytest.approx(expected, rel=1e-12)


def stacked(statistic, label_set, n_outputs):
    return np.array(
        [statistic if j in label_set else 0.0 * statistic for j in range(n_outputs)]
    )


@pytest.mark.parametrize("max_labels", [1, 2, 3])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", ["class_grams", "class_sums"])
def test_class_bounds_hold_and_are_attained(rng, name, adjacency, max_labels):
    n_outputs, clip_norm = 4, 0.7
    label_sets = [
        labels
        for size in range(max_labels + 1)
        for labels in itertools.combinations(range(n_outputs), size)
    ]
    contributions = [
        stacked(np.outer(x, x) if name == "class_grams" else x, labels, n_outputs)
        for x in rows_in_ball(rng, clip_norm, size=2)
        for labels in label_sets
    ]
    bound = getattr(sensitivity, name)(clip_norm, adjacency, max_labels)
    assert bound * (1 - 1e-6) < largest_change(contributions, adjacency) <= bound


@pytest.mark.parametrize("clip_norm", CLIP_NORMS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_clipped_gradient_bound_holds_and_is_attained(rng, clip_norm, adjacency):
    gradients = rows_in_ball(rng, clip_norm, size=6)
    observed = largest_change(gradients, adjacency)
    declared = sensitivity.clipped_gradient(clip_norm, adjacency)
    assert declared * (1 - 1e-6) < observed <= declared


def residuals(rng, loss, n_outputs):
    if loss == "softmax":
        labels = {0, n_outputs - 1}
        return [
            p - np.eye(n_outputs)[label]
            for p in probabilities(rng, n_outputs)
            for label in labels
        ]
    corners = [np.ones(n_outputs), -np.ones(n_outputs)]
    return corners + list(rng.uniform(-1.0, 1.0, (5, n_outputs)))


@pytest.mark.parametrize("n_outputs", N_OUTPUTS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_loss_gradient_bound_holds_and_is_attained(rng, loss, adjacency, n_outputs):
    clip_norm = 0.7
    rows = rows_in_ball(rng, clip_norm, size=2)[:5]
    found = residuals(rng, loss, n_outputs)
    contributions = [np.outer(r, x) for r in found for x in rows]
    contributions = sorted(contributions, key=np.linalg.norm)[-20:]
    observed = largest_change(contributions, adjacency)
    declared = sensitivity.loss_gradient(clip_norm, loss, n_outputs, adjacency)
    assert observed <= declared
    if loss == "sigmoid" or n_outputs > 1:
        assert observed > declared * (1 - 1e-6)


@pytest.mark.parametrize("n_outputs", N_OUTPUTS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_curvature_bound_holds_and_is_attained(rng, loss, adjacency, n_outputs):
    clip_norm = 0.7
    rows = rows_in_ball(rng, clip_norm, size=2)[:5]
    found = probabilities(rng, n_outputs)
    if loss == "sigmoid":
        found = [np.full(n_outputs, 0.5), *rng.uniform(0.0, 1.0, (5, n_outputs))]
    contributions = [
        np.array([w * np.outer(x, x) for w in p * (1.0 - p)])
        for p in found
        for x in rows
    ]
    contributions = sorted(contributions, key=np.linalg.norm)[-20:]
    observed = largest_change(contributions, adjacency)
    declared = sensitivity.curvature_grams(clip_norm, loss, n_outputs, adjacency)
    assert observed <= declared
    if loss == "sigmoid" or n_outputs >= 2:
        assert observed > declared * (1 - 1e-6)


def clipped(gradient, radius):
    return gradient * min(1.0, radius / max(np.linalg.norm(gradient), 1e-300))


@pytest.mark.parametrize("share", [1e-3, 0.7, 0.999, 1.001, 1e3])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_clipped_loss_gradient_has_the_smaller_bound(rng, loss, adjacency, share):
    """A clip at ``share`` times the bound of the loss, of every pair of records."""
    clip_norm, n_outputs = 0.7, 3
    radius = share * clip_norm * sensitivity.residual_norm(loss, n_outputs)
    contributions = [
        clipped(np.outer(r, x), radius)
        for r in residuals(rng, loss, n_outputs)
        for x in rows_in_ball(rng, clip_norm, size=2)[:5]
    ]
    contributions = sorted(contributions, key=np.linalg.norm)[-40:]
    observed = largest_change(contributions, adjacency)
    declared = sensitivity.loss_gradient(clip_norm, loss, n_outputs, adjacency, radius)
    assert declared * (1 - 1e-6) < observed <= declared


def test_softmax_bounds_hold_at_the_best_of_a_search(rng):
    """Ascent on the scores, in case the extremes above miss the worst record."""
    for n_outputs in (2, 3, 5):
        best = {"gradient": 0.0, "curvature": 0.0}
        for _ in range(50):
            scores = rng.normal(size=n_outputs) * 5.0
            for name in best:
                current, value = scores, 0.0
                for _ in range(100):
                    trial = current + rng.normal(size=n_outputs) * 0.5
                    p = np.exp(trial - trial.max())
                    p /= p.sum()
                    vector = (
                        p * (1 - p) if name == "curvature" else p - np.eye(n_outputs)[0]
                    )
                    if np.linalg.norm(vector) > value:
                        current, value = trial, float(np.linalg.norm(vector))
                best[name] = max(best[name], value)
        assert best["gradient"] <= sensitivity.residual_norm("softmax", n_outputs)
        assert best["curvature"] <= sensitivity.curvature_norm("softmax", n_outputs)


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
@pytest.mark.parametrize("n_outputs", N_OUTPUTS)
def test_largest_residual_bounds_every_entry(rng, loss, n_outputs):
    for residual in residuals(rng, loss, n_outputs):
        assert np.max(np.abs(residual)) <= sensitivity.largest_residual(loss)


def test_squared_residuals_are_bounded_by_the_radius_of_their_clip(rng):
    """They have no bound of their own; the clip and the sensitivity must agree."""
    for n_outputs in N_OUTPUTS:
        assert sensitivity.residual_norm("squared", n_outputs) == 2.0
        bound = sensitivity.loss_gradient(0.7, "squared", n_outputs, "add_remove")
        assert bound == 2.0 * 0.7 * (1.0 + 2.0**-20)
    assert sensitivity.largest_residual("squared") == 2.0
    for loss in ("softmax", "sigmoid"):
        assert sensitivity.largest_residual(loss) == 1.0


@pytest.mark.parametrize("max_group_size", [1, 2, 3])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", ["gram", "clipped_gradient"])
def test_per_user_bound_holds_and_is_attained(rng, name, adjacency, max_group_size):
    """Every multiset of up to ``k`` records against every other, or none."""
    rows = list(rows_in_ball(rng, 0.7, size=2)[:7])
    if name == "gram":
        rows = [np.outer(x, x) for x in rows]
    users = [
        np.sum(chosen, axis=0)
        for size in range(1, max_group_size + 1)
        for chosen in itertools.combinations_with_replacement(rows, size)
    ]
    users.append(np.zeros_like(rows[0]))
    observed = largest_change(users, adjacency)
    single = getattr(sensitivity, name)(0.7, adjacency)
    declared = sensitivity.per_user(single, max_group_size)
    assert declared * (1 - 1e-6) < observed <= declared


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("bound", [sensitivity.class_grams, sensitivity.class_sums])
def test_class_bounds_are_by_default_those_of_one_label(bound, adjacency):
    assert bound(2.0, adjacency) == bound(2.0, adjacency, 1)


def test_every_bound_has_a_margin_for_the_rounding_of_sums():
    """Of 2**32 records a sum is rounded by a relative 2**-53, in both neighbours."""
    margin = 2 * 2.0**32 * 2.0**-53
    assert sensitivity.clipped_gradient(1.0, "add_remove") == 1.0 + margin
