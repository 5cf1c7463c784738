import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfeat.core.bounds import replacement
from privfeat.core.sums.confidence import (
    confidence_gap,
    exact_box_sums,
    exact_class_counts,
    exact_confidence_gap,
    exact_level_counts,
)

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


ADJACENCIES = ("add_remove", "replace_one")
SIZES = (2, 4, 8)
CELLS = st.tuples(*(st.integers(-1, size) for size in SIZES))


def counts_of(records):
    cells = np.array(records, int).reshape(-1, len(SIZES)).T
    return exact_level_counts(cells, np.ones(len(records), bool), SIZES).value


@given(st.lists(CELLS, max_size=12), CELLS, CELLS)
def test_level_counts_move_by_at_most_their_bound(records, old, new):
    """Cells outside of a level, of one or of both records, as well."""
    before, one, two = (
        counts_of(rows) for rows in (records, [*records, old], [*records, new])
    )
    for adjacency, others in (("add_remove", before), ("replace_one", two)):
        bound = replacement.level_counts(len(SIZES), adjacency)
        assert np.linalg.norm(one - others) <= bound


def test_level_counts_reach_their_bounds():
    none, one, two = (counts_of(rows) for rows in ([], [(0, 0, 0)], [(1, 2, 5)]))
    for adjacency, other in (("add_remove", none), ("replace_one", two)):
        bound = replacement.level_counts(len(SIZES), adjacency)
        assert np.linalg.norm(one - other) == pytest.approx(bound, rel=1e-5)


def test_level_counts_are_those_of_the_present_records():
    cells = np.array([[0, 1, 1, -1], [3, 0, 4, 2]])
    found = exact_level_counts(cells, np.array([1, 1, 1, 0], bool), (2, 4))
    assert found.value.tolist() == [1, 2, 1, 0, 0, 1]  # no cell 4 in a level of 4
    assert (found.total.dtype, found.grid_step) == (np.int64, 2.0**-20)


BOX = ((0.0, 1.0), (-0.5, 0.5), (-0.125, 0.25))
NUMBERS = st.tuples(*[st.floats(allow_nan=True, allow_infinity=True)] * len(BOX))


def box_sum(records):
    values = np.array(records, float).reshape(-1, len(BOX))
    return exact_box_sums(values, np.ones(len(values), bool), BOX).value


@given(st.lists(NUMBERS, max_size=12), NUMBERS, NUMBERS)
def test_box_sums_move_by_at_most_their_bound(records, old, new):
    before, one, two = (
        box_sum(rows) for rows in (records, [*records, old], [*records, new])
    )
    for adjacency, others in (("add_remove", before), ("replace_one", two)):
        assert np.linalg.norm(one - others) <= replacement.box_sums(BOX, adjacency)


def test_box_sums_reach_their_bounds():
    low, high = np.array(BOX).T
    for adjacency, other in (("add_remove", 0.0), ("replace_one", box_sum([low]))):
        found = np.linalg.norm(box_sum([[1.0, -0.5, 0.25]]) - 0.0)
        if adjacency == "replace_one":
            found = np.linalg.norm(box_sum([high]) - other)
        bound = replacement.box_sums(BOX, adjacency)
        assert found == pytest.approx(bound, rel=1e-5)


def test_box_sums_leave_out_empty_slots_and_numbers_that_are_none():
    values = np.array([[0.5, 0.25, np.nan], [9.0, -9.0, np.inf], [1.0, 0.5, 0.25]])
    found = exact_box_sums(values, np.array([True, True, False]), BOX)
    assert found.value.tolist() == [1.5, -0.25, 0.25]


def test_a_box_of_one_step_holds_it():
    found = exact_box_sums(np.ones((1, 1)), np.array([True]), ((0.0, 2.0**-20),))
    assert found.value.tolist() == [2.0**-20]


@pytest.mark.parametrize("box", [(0.0, 0.75 * 2.0**-20), (-0.1, 1.0)])
def test_boxes_out_of_which_rounding_leads_are_refused(box):
    with pytest.raises(ValueError, match="must hold multiples"):
        exact_box_sums(np.ones((1, 1)), np.array([True]), (box,))


@pytest.mark.validation
def test_bounds_refuse_no_levels_and_boxes_without_zero():
    with pytest.raises(ValueError, match="n_levels must be"):
        replacement.level_counts(0, "add_remove")
    for box in (((0.1, 1.0),), ((-2.0, 0.0),), ((0.0, 2.0),), ((-1.0, -0.5),)):
        with pytest.raises(ValueError, match=r"(low|high) must be"):
            replacement.box_sums(box, "add_remove")
    with pytest.raises(ValueError, match="sensitivity must be"):
        replacement.box_sums(((0.0, 0.0),), "replace_one")
    with pytest.raises(ValueError, match="adjacency must be one of"):
        replacement.box_sums(BOX, "swap")


@pytest.mark.validation
@pytest.mark.parametrize("box", [(-1.5, 0.0), (0.5, 1.0), (-1.0, -0.5), (0.0, 1.5)])
def test_box_beyond_one_or_without_zero_is_refused(box):
    with pytest.raises(ValueError, match="must be in"):
        replacement.box_sums((box,), "add_remove")


@pytest.mark.parametrize("low", [-1.0, -0.5, 0.0])
@pytest.mark.parametrize("high", [0.25, 1.0])
def test_bound_of_one_number_is_its_longest_side(low, high):
    rel = {"rel": 1e-5}
    one, two = (replacement.box_sums(((low, high),), a) for a in ADJACENCIES)
    assert one == pytest.approx(max(-low, high), **rel)
    assert two == pytest.approx(high - low, **rel)
    assert one >= max(-low, high)
    assert two >= high - low


@pytest.mark.validation
def test_levels_are_one_at_least_and_as_many_as_cells():
    assert replacement.level_counts(1, "add_remove") == pytest.approx(1.0, rel=1e-5)
    with pytest.raises(ValueError, match="n_levels must be"):
        replacement.level_counts(0, "add_remove")
    with pytest.raises(ValueError, match="argument"):
        exact_level_counts(np.zeros((2, 1), int), np.ones(1, bool), (2,))


def test_class_counts_are_those_of_the_present_records():
    """Label -1 is the last class."""
    labels, present = np.array([0, 2, -1, 1, 1]), np.array([1, 1, 1, 1, 0], bool)
    found = exact_class_counts(labels, present, 3)
    assert found.value.tolist() == [1, 1, 2]
    assert (found.total.dtype, found.grid_step) == (np.int64, 2.0**-20)
    assert replacement.class_counts("add_remove") == pytest.approx(1.0, rel=1e-5)
