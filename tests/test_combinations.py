"""The fast tests leave out no value of a parameter."""

import itertools

import pytest

from tests.combinations import covering, values_of

ODD = object()


@pytest.mark.parametrize("sizes", [(5,), (2, 3), (4, 4), (1, 7, 2), (3, 4, 5, 2)])
def test_covering_holds_every_value_in_as_few_sets_as_the_longest_parameter(sizes):
    every = [*itertools.product(*map(range, sizes))]
    sets = [set(enumerate(values)) for values in every]
    kept = covering(sets)
    assert set().union(*(sets[place] for place in kept)) == set().union(*sets)
    assert len(kept) == len({*kept}) == max(sizes)


def test_covering_takes_what_marks_have_left():
    """Of a value all of whose other combinations are slow, say."""
    sets = [{"a", "x"}, {"b", "x"}, {"b", "y"}, {"c", "x"}]
    assert sorted(covering(sets)) == [0, 2, 3]


@pytest.fixture(params=["of a fixture", ODD])
def fixed(request):
    return request.param


@pytest.mark.parametrize("alone", [1, 2, 3])
@pytest.mark.parametrize(("one", "two"), [(ODD, 1), (ODD, 2)])
def test_values_are_of_each_decorator_and_fixture(alone, one, two, fixed, request):
    expected = {
        (("alone",), (id(alone),)),
        (("one", "two"), (id(one), id(two))),
        (("fixed",), (id(fixed),)),
    }
    assert values_of(request.node) == expected


def test_those_left_out_are_marked(request):
    """Of the twelve above, in a run of all."""
    name = test_values_are_of_each_decorator_and_fixture.__name__
    found = [i for i in request.session.items if getattr(i, "originalname", "") == name]
    left_out = [item for item in found if item.get_closest_marker("more")]
    assert len(found) - len(left_out) <= 3
