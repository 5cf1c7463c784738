import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfeat.core.confidence import confidence_gap, exact_confidence_gap

RECORD = st.tuples(st.floats(allow_nan=True, allow_infinity=True), st.booleans())


def gap(records, present=None):
    confidence = np.array([c for c, _ in records], np.float64)
    correct = np.array([h for _, h in records], bool)
    kept = np.ones(len(records), bool) if present is None else np.array(present)
    return float(exact_confidence_gap(confidence, correct, kept).value)


@given(st.lists(RECORD, max_size=20), RECORD)
def test_gap_moves_by_at_most_one_when_a_record_is_added(records, extra):
    assert abs(gap([*records, extra]) - gap(records)) <= confidence_gap("add_remove")


@given(st.lists(RECORD, max_size=20), RECORD, RECORD)
def test_gap_moves_by_at_most_two_when_a_record_is_replaced(records, old, new):
    moved = abs(gap([*records, old]) - gap([*records, new]))
    assert moved <= confidence_gap("replace_one")


def test_bounds_are_reached():
    assert gap([(1.0, False)]) - gap([]) == confidence_gap("add_remove")
    assert gap([(1.0, False)]) - gap([(0.0, True)]) == confidence_gap("replace_one")


def test_gap_is_confidence_minus_correctness():
    assert gap([(0.75, True), (0.5, False)]) == pytest.approx(0.25)
    assert gap([(0.75, True), (0.5, False)], [True, False]) == pytest.approx(-0.25)


def test_a_confidence_that_is_no_number_counts_as_none():
    assert gap([(np.nan, True)]) == -1.0


def test_contributions_are_whole_on_a_grid_of_a_power_of_two():
    one = np.ones(1, bool)
    total = exact_confidence_gap(np.array([0.3]), ~one, one)
    assert total.total.dtype == np.int64
    assert total.unit == 2.0**-20


def test_sum_is_exact_in_any_order():
    rng = np.random.default_rng(0)
    records = [(c, c < 0.5) for c in rng.uniform(size=5000)]
    assert gap(records) == gap(records[::-1])


def test_unknown_adjacency_is_refused():
    with pytest.raises(ValueError, match="adjacency must be one of"):
        confidence_gap("swap")
