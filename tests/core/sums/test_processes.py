"""What the processes of a team send each other; threads stand for them."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from privfeat.core.sums.processes import Team
from privfeat.exceptions import PrivacyError
from tests.teams import Board, Thread


def in_both(function):
    """Return what a function of a team gives in each of two processes, or raises."""
    board = Board()

    def run(index):
        try:
            return function(Thread(index, 2, board=board))
        except PrivacyError as error:
            return str(error)

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(run, range(2)))


def test_a_total_is_the_same_in_all_processes():
    parts = np.array([[1.5, -2.0], [2.0**53, 1.0]])
    for found in in_both(lambda team: team.total(parts[team.index])):
        np.testing.assert_array_equal(found, parts.sum(axis=0))


def test_a_process_alone_has_the_total():
    values = np.array([1.0, -0.0])
    assert Team().total(values) is values
    assert Team().each(3) == [3]


def test_a_process_reads_all_of_its_own_rows_and_its_part_of_shared_ones():
    assert [Team(i, 3, "own").part(5) for i in range(3)] == 3 * [range(5)]
    parts = [Team(i, 3).part(5) for i in range(3)]
    assert [chunk for part in parts for chunk in part] == [0, 1, 2, 3, 4]


DIFFERENT = {
    "name": lambda team, x: team.total(x, f"sum {team.index}"),
    "grid step": lambda team, x: team.total(x, "sum", 1.0 + team.index * 2.0**-52),
    "shape": lambda team, x: team.total(x.reshape(4 - 3 * team.index, -1)),
    "type": lambda team, x: team.total(x.astype(["f8", "f4"][team.index])),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_nothing_is_added_that_differs(name):
    for said in in_both(lambda team: DIFFERENT[name](team, np.zeros(4))):
        assert said.startswith("all processes must have the same sum")


def test_nothing_is_added_out_of_order():
    """A process that has made one call more adds another sum to the same name."""

    def calls(team):
        if team.index:
            next(team._positions)
        return team.total(np.zeros(2))

    for said in in_both(calls):
        assert "Call the same fits with the same parameters, in one order" in said


@pytest.mark.parametrize("first", [0.1, -0.0, 5e-324, -np.inf, np.nan])
def test_all_get_the_value_of_the_first_bit_for_bit(first):
    """Added as floats, minus zero would become zero."""
    values = np.array([[first, 3.0], [np.nan, -7.0]])
    for found in in_both(lambda team: team.from_first(values[team.index])):
        assert found.dtype == np.float64
        assert found.tobytes() == values[0].tobytes()


def test_all_get_the_integers_of_the_first():
    values = np.array([[2**63 - 1, -5], [1, 1]])
    for found in in_both(lambda team: team.from_first(values[team.index])):
        np.testing.assert_array_equal(found, values[0])


def test_numbers_of_all_come_in_their_order():
    assert in_both(lambda team: team.each(10 + team.index)) == [[10, 11], [10, 11]]


@pytest.mark.parametrize("same", [True, False])
def test_contents_are_compared(same):
    def content(team):
        return b"rows" if same or team.index else b"others"

    checked = in_both(lambda team: team.check_same("rows", content(team)))
    apart = in_both(lambda team: team.check_distinct("rows", content(team)))
    for one, two in zip(checked, apart, strict=True):
        assert (one is None) is same
        assert (two is None) is not same
