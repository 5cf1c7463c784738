"""Sums over records that carry several labels each, up to a bounded number."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from privfeat.core.bounds import sensitivity
from privfeat.core.sums.statistics import exact_class_sums, exact_gradient
from tests.core.grids import LIMIT, STEP, class_gram_stack, integers


def label_row(labels, k=3):
    """The first ``k`` labels of a set, filled up with -1."""
    return [*sorted(labels)[:k], *[-1] * (k - len(labels))][:k]


label_sets = st.sets(st.integers(0, 3), max_size=3)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=hnp.arrays(np.int64, (7, 3), elements=integers),
    carried=st.lists(label_sets, min_size=7, max_size=7),
)
def test_exact_class_sums_of_several_labels_equal_whole_numbers(
    grid_rows, rows, carried
):
    codes = np.array([label_row(labels) for labels in carried])
    part = grid_rows(rows.astype(float), codes, step=STEP)
    whole = rows.astype(object)
    for label in range(4):
        kept = np.array([label in labels for labels in carried])
        expected = (kept @ whole).astype(float) * STEP
        np.testing.assert_array_equal(exact_class_sums(part, 4).value[label], expected)
        expected = (whole[kept].T @ whole[kept]).astype(float) * STEP**2
        found = class_gram_stack(part, 4)[label]
        np.testing.assert_array_equal(found, np.broadcast_to(expected, (3, 3)))


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    one=label_sets,
    two=label_sets,
    opposite=st.booleans(),
    k=st.integers(1, 3),
    scale=st.sampled_from([0.0, 1.0, 1e3]),
)
def test_records_of_several_labels_are_within_their_bounds(
    grid_rows, one, two, opposite, k, scale
):
    """One record against none, and against any other, with any labels."""
    row = np.trunc(np.array([[0.6, 0.8, 0.0]]) * LIMIT)
    coef = np.random.default_rng(1).normal(size=(4, 3)) * scale

    def contributions(row, labels):
        part = grid_rows(row, np.array([label_row(labels, k)]), step=STEP)
        yield exact_class_sums(part, 4).value
        yield class_gram_stack(part, 4)
        yield exact_gradient(part, coef, loss="sigmoid", clip_norm=2.0).value
        yield exact_gradient(part, coef, loss="squared", clip_norm=0.7).value

    def bounds(adjacency):
        yield sensitivity.class_sums(1.0, adjacency, k)
        yield sensitivity.class_grams(1.0, adjacency, k)
        yield sensitivity.loss_gradient(1.0, "sigmoid", 4, adjacency)
        yield sensitivity.clipped_gradient(0.7, adjacency)

    other = -row if opposite else row[:, ::-1]
    for left, right, single, pair in zip(
        contributions(row, one),
        contributions(other, two),
        bounds("add_remove"),
        bounds("replace_one"),
        strict=True,
    ):
        assert np.linalg.norm(left) <= single
        assert np.linalg.norm(left - right) <= pair
