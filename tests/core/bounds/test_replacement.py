"""Bounds for what two records share, against the worst pairs that a search finds."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from privfeat.core.bounds import replacement, sensitivity

ADJACENCIES = ["add_remove", "replace_one"]
# C, k, scale of the Gram matrix and of the class Gram matrices: small, even, large.
STACKS = [
    (1.0, 1, 0.1, 0.0),
    (1.0, 1, math.sqrt(0.5), 0.0),
    (0.7, 1, 2.0, 0.0),
    (1e-3, 1, 900.0, 0.0),
    (2.0, 2, 0.3, 0.0),
    (1.0, 3, 3.0, 0.0),
    (1.0, 1, 1.0, 1.0),
    (0.7, 2, 0.4, 1.3),
    (1.0, 3, 0.2, 0.2),
]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def stack(row, labels, gram_scale, class_gram_scale):
    """What one record adds, all parts as one vector."""
    outer = np.outer(row, row)
    parts = [
        gram_scale * outer,
        class_gram_scale * np.multiply.outer(labels, outer),
        np.outer(labels, row),
    ]
    return np.concatenate([part.ravel() for part in parts])


def label_sets(n_outputs, k):
    for size in range(k + 1):
        for chosen in itertools.combinations(range(n_outputs), size):
            yield np.isin(np.arange(n_outputs), chosen).astype(float)


def worst_pair(rng, radius, k, scales):
    """Ascent over pairs of rows in the ball, for every kind of pair of label sets."""
    kinds = {}
    for one, two in itertools.product(label_sets(4, k), repeat=2):
        kinds[one.sum(), two.sum(), one @ two] = one, two

    def in_ball(point):
        return radius * point / max(1.0, np.linalg.norm(point))

    def negative_change(points, one, two):
        x, z = in_ball(points[:2]), in_ball(points[2:])
        return -np.linalg.norm(stack(x, one, *scales) - stack(z, two, *scales))

    starts = [np.array([1.0, 0.0, -1.0, 0.0]), np.array([1.0, 0.0, 0.0, 1.0])]
    starts += list(rng.normal(size=(2, 4)))
    return max(
        -minimize(negative_change, start, args=pair, method="Nelder-Mead").fun
        for pair in kinds.values()
        for start in starts
    )


@pytest.mark.parametrize("case", STACKS)
def test_stack_moves_by_its_sensitivity_at_most(rng, case):
    """The search comes as near as it is exact: the bound is attained."""
    radius, k, *scales = case
    declared = replacement.gram_and_products(
        radius, math.sqrt(k), *scales, "replace_one"
    )
    found = worst_pair(rng, radius, k, scales)
    assert declared * (1 - 1e-4) < found <= declared


@pytest.mark.parametrize("case", STACKS)
def test_stack_without_one_record_moves_by_its_sensitivity(rng, case):
    radius, k, *scales = case
    declared = replacement.gram_and_products(
        radius, math.sqrt(k), *scales, "add_remove"
    )
    row = radius * np.array([0.6, -0.8])
    found = max(np.linalg.norm(stack(row, s, *scales)) for s in label_sets(4, k))
    assert declared * (1 - 1e-5) < found <= declared
    pair = replacement.gram_and_products(radius, math.sqrt(k), *scales, "replace_one")
    assert pair > declared  # also bounds a pair of which one record is missing


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
@pytest.mark.parametrize("scale", [0.2, 0.7, 3.0])
def test_products_may_have_any_bounded_factor(rng, loss, scale):
    """Residuals of either sign, at random and opposite, in place of indicators."""
    bound = sensitivity.residual_norm(loss, 3)
    declared = replacement.gram_and_products(1.0, bound, scale, 0.0, "replace_one")
    factors = rng.normal(size=(40, 3))
    factors *= bound / np.linalg.norm(factors, axis=1, keepdims=True)
    factors = [*factors, *-factors, np.zeros(3)]
    for one, two in itertools.product(factors[::3], factors[::3]):
        x, z = rng.normal(size=(2, 2))
        for z_near in (z, x, -x, x + 0.1 * z, 0.2 * z - x):
            rows = [v / np.linalg.norm(v) for v in (x, z_near)]
            left, right = (
                stack(row, factor, scale, 0.0)
                for row, factor in zip(rows, (one, two), strict=True)
            )
            assert np.linalg.norm(left - right) <= declared


def test_free_gram_costs_nothing_beside_products():
    """Up to ``S^2 = R^2 / 2`` the worst pair is that of the products, for ``C = 1``."""
    for scale in (0.1, math.sqrt(0.5)):
        bound = replacement.gram_and_products(1.0, 1.0, scale, 0.0, "replace_one")
        assert bound == pytest.approx(2.0, rel=3e-6)
    more = replacement.gram_and_products(1.0, 1.0, 0.75, 0.0, "replace_one")
    assert more > 2.0 * (1 + 1e-4)


@pytest.mark.parametrize("constant", [0.01, 0.5, 1.9, 30.0])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_row_sum_bound_holds_and_is_attained(rng, adjacency, constant):
    """Over rows with the constant, and the row of a record that is dropped."""
    directions = rng.normal(size=(20, 2))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    rows = 0.7 * np.vstack([directions, -directions, 0.5 * directions])
    rows = np.vstack([np.column_stack([rows, np.full(60, constant)]), np.zeros((1, 3))])
    others = rows if adjacency == "replace_one" else np.zeros((1, 3))
    found = max(np.linalg.norm(one - two) for one in rows for two in others)
    declared = replacement.row_sum(0.7, constant, adjacency)
    assert declared * (1 - 1e-5) < found <= declared


@pytest.mark.parametrize(
    ("adjacency", "most"), [*zip(ADJACENCIES, (1.0, math.sqrt(2.0)), strict=True)]
)
def test_class_counts_bound_holds_and_is_attained(adjacency, most):
    counts = np.vstack([np.eye(3), np.zeros((1, 3))])
    others = counts if adjacency == "replace_one" else np.zeros((1, 3))
    found = max(np.linalg.norm(one - two) for one in counts for two in others)
    declared = replacement.class_counts(adjacency)
    assert found == most < declared == most * (1.0 + 2.0**-20)


def test_bounds_have_a_margin_for_the_rounding_of_sums():
    """One rounding of a sum, and one more where it is scaled."""
    margin = 2.0**-20
    assert replacement.row_sum(3.0, 4.0, "add_remove") == 5.0 * (1.0 + margin)
    bound = replacement.gram_and_products(1.0, 4.0, 3.0, 0.0, "add_remove")
    assert bound == 5.0 * (1.0 + 2.0 * margin)


def test_bounds_of_moments_have_a_margin_for_squares_that_are_rounded_up():
    """Of two records at the ends of a column: above ``2 e + e^2`` for ``e = 2^-20``."""
    bound = replacement.column_moments(3, 1e-3, 1.0, 1.0, "replace_one")
    assert bound == math.sqrt(3.0 * (4.0 + 2.0**-18)) * (1.0 + 2.0 * 2.0**-20)


@pytest.mark.validation
@pytest.mark.parametrize(
    ("mean_scale", "shift"), [(0.0, 0.5), (-0.5, 0.5), (1.5, 0.5), (0.5, 1.5)]
)
def test_bounds_of_moments_refuse_scales_out_of_range(mean_scale, shift):
    with pytest.raises(ValueError, match="must be in"):
        replacement.column_moments(3, 1.0, mean_scale, shift, "replace_one")


@pytest.mark.validation
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("place", range(4))
def test_bounds_refuse_numbers_out_of_range(bad, place):
    arguments = [1.0, 1.0, 1.0, 1.0]
    arguments[place] = bad
    if (place, bad) != (3, 0.0):
        with pytest.raises(ValueError, match="must be"):
            replacement.gram_and_products(*arguments, "replace_one")
    if place < 2:
        with pytest.raises(ValueError, match="must be"):
            replacement.row_sum(*arguments[:2], "replace_one")


@pytest.mark.validation
@pytest.mark.parametrize("scales", [(1e-170, 0.0), (1e-170, 1e-170), (1e170, 0.0)])
def test_stack_refuses_scales_whose_squares_are_no_numbers(scales):
    with pytest.raises((ValueError, OverflowError)):
        replacement.gram_and_products(1.0, 1.0, *scales, "replace_one")


@pytest.mark.validation
def test_bounds_refuse_an_unknown_adjacency():
    with pytest.raises(ValueError, match="adjacency must be one of"):
        replacement.row_sum(1.0, 1.0, "replace")
    with pytest.raises(ValueError, match="adjacency must be one of"):
        replacement.gram_and_products(1.0, 1.0, 1.0, 0.0, "replace")
