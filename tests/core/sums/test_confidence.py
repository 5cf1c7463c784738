import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfeat.core.sums.confidence import confidence_gap, exact_confidence_gap

RECORD = st.tuples(st.floats(allow_nan=True, allow_infinity=True), st.booleans())


def gap(records, present=None, n_classes=2):
    confidence = np.array([c for c, _ in records], np.float64)
    correct = np.array([h for _, h in records], bool)
    kept = np.ones(len(records), bool) if present is None else np.array(present)
    return float(exact_confidence_gap(confidence, correct, kept, n_classes).value)


@given(st.lists(RECORD, max_size=20), RECORD)
def test_gap_moves_by_at_most_one_when_a_record_is_added(records, extra):
    moved = abs(gap([*records, extra]) - gap(records))
    assert moved <= confidence_gap("add_remove", 2)


@given(st.lists(RECORD, max_size=20), RECORD, RECORD, st.integers(1, 5000))
def test_gap_moves_by_at_most_its_bound_when_a_record_is_replaced(
    records, old, new, n_classes
):
    one, two = (gap([*records, last], None, n_classes) for last in (old, new))
    assert abs(one - two) <= confidence_gap("replace_one", n_classes)


@pytest.mark.parametrize("n_classes", [1, 2, 3, 1000, 2**20, 2**21])
def test_bounds_are_reached(n_classes):
    worst = gap([(1.0, False)], None, n_classes)
    assert worst == confidence_gap("add_remove", n_classes) == 1.0
    moved = worst - gap([(0.0, True)], None, n_classes)
    bound = confidence_gap("replace_one", n_classes)
    assert bound - 2.0**-20 <= moved <= bound
    assert bound == 2.0 - 1.0 / n_classes


@pytest.mark.validation
def test_bound_refuses_no_classes():
    with pytest.raises(ValueError, match="n_classes must be"):
        confidence_gap("add_remove", 0)


def test_gap_is_confidence_minus_correctness():
    assert gap([(0.75, True), (0.5, False)]) == pytest.approx(0.25)
    assert gap([(0.75, True), (0.5, False)], [True, False]) == pytest.approx(-0.25)


def test_a_confidence_that_is_no_number_counts_as_the_smallest():
    assert gap([(np.nan, True)]) == -0.5


def test_contributions_are_whole_on_a_grid_of_a_power_of_two():
    one = np.ones(1, bool)
    total = exact_confidence_gap(np.array([0.3]), ~one, one, 7)
    assert total.total.dtype == np.int64
    assert total.grid_step == 2.0**-20


def test_sum_is_exact_in_any_order():
    rng = np.random.default_rng(0)
    records = [(c, c < 0.5) for c in rng.uniform(size=5000)]
    assert gap(records) == gap(records[::-1])


def test_unknown_adjacency_is_refused():
    with pytest.raises(ValueError, match="adjacency must be one of"):
        confidence_gap("swap", 2)
