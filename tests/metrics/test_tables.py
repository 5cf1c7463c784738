"""Every neighbour, by brute force: what one record changes in what is released."""

import itertools

import numpy as np
import pytest

from privfeat.metrics import tables
from privfeat.metrics.tables import UnitGrid

ADJACENCIES = ["add_remove", "replace_one"]
SMALL = UnitGrid((2, 4))


def largest_move(sums, adjacency):
    others = sums if adjacency == "replace_one" else [np.zeros_like(sums[0])]
    return max(np.linalg.norm(a - b) for a in sums for b in others)


def outcomes_of(codes, predicted, counted=None):
    kept = np.ones(len(codes), bool) if counted is None else np.array(counted)
    return tables.exact_outcomes(np.array(codes), np.array(predicted), 3, kept).value


def scores_of(sides, scores):
    kept = np.ones(len(sides), bool)
    return tables.exact_scores(np.array(sides), np.array(scores), kept, SMALL).value


def errors_of(targets, predicted, bounds=(-2.0, 6.0)):
    kept = np.ones(len(targets), bool)
    return tables.exact_errors(
        np.array(targets, float), np.array(predicted, float), bounds, kept
    ).value


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_record_moves_outcomes_by_their_sensitivity(adjacency):
    records = itertools.product(range(3), range(3))
    found = largest_move([outcomes_of([c], [p]) for c, p in records], adjacency)
    assert found == pytest.approx(
        tables.outcomes_query(adjacency).l2_sensitivity, rel=1e-5
    )
    assert found <= tables.outcomes_query(adjacency).l2_sensitivity


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_record_moves_scores_by_their_sensitivity(adjacency):
    """Scores that are no probabilities, and none, as well."""
    scores = [*np.linspace(-0.1, 1.1, 30), np.nan, np.inf, *SMALL.edges]
    records = itertools.product((0, 1), scores)
    found = largest_move([scores_of([side], [s]) for side, s in records], adjacency)
    query = tables.scores_query(adjacency, SMALL)
    assert found <= query.l2_sensitivity
    assert found == pytest.approx(query.l2_sensitivity, rel=1e-5)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_record_moves_errors_by_at_most_their_sensitivity(adjacency):
    ends = [-2.0, 6.0, 2.0, -1e9, 1e9, np.nan, 0.3, 5.9]
    sums = [errors_of([t], [p]) for t, p in itertools.product(ends, ends)]
    found = largest_move(sums, adjacency)
    bound = tables.errors_query(adjacency).l2_sensitivity
    assert 0.85 * bound < found <= bound


def test_sums_of_all_records_are_sums_of_each():
    """So that what holds for one record holds beside any others."""
    rng = np.random.default_rng(0)
    codes, predicted = rng.integers(0, 3, (2, 40))
    single = sum(outcomes_of([c], [p]) for c, p in zip(codes, predicted, strict=True))
    assert np.array_equal(outcomes_of(codes, predicted), single)
    sides, scores = rng.integers(0, 2, 40), rng.uniform(size=40)
    single = sum(scores_of([c], [p]) for c, p in zip(sides, scores, strict=True))
    assert np.array_equal(scores_of(sides, scores), single)
    t, p = rng.normal(size=(2, 40))
    single = sum(errors_of([a], [b]) for a, b in zip(t, p, strict=True))
    assert np.array_equal(errors_of(t, p), single)


def test_outcomes_are_totals_classes_and_the_confusion_matrix():
    found = outcomes_of([0, 0, 1, 2], [0, 1, 1, 0])
    totals, by_class, table = np.split(found, [2, 8])
    assert totals.tolist() == [2, 2]
    assert by_class.reshape(3, 2).tolist() == [[1, 1], [1, 0], [0, 1]]
    assert table.reshape(3, 3).tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 0]]


def test_scores_are_a_histogram_of_each_side_at_each_level():
    found = scores_of([0, 1, 1], [0.01, 0.01, 0.99])
    assert np.split(found, [4])[0].tolist() == [1, 0, 1, 1]
    assert np.split(found, [4])[1].tolist() == [1, 0, 0, 0, 1, 0, 0, 1]


def test_errors_are_powers_in_parts_of_the_range():
    found = errors_of([2.0, 6.0], [4.0, 6.0])
    half = [0.5**power for power in (1, 2, 3, 4)]
    expected = np.array([2, 0.25, 0.25**2, 0.25**4, *half])
    assert found == pytest.approx(expected * tables.ERROR_FACTORS)


def test_records_that_do_not_count_add_nothing():
    found = outcomes_of([0, 1], [0, 0], [False, True])
    assert found.sum() == 3
    assert found[1] == 1
