"""Parameters as JSON."""

import json
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfeat._encoding import decode, encode

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
PARAMETERS = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=10,
)


@pytest.mark.slow
@settings(max_examples=50)
@given(PARAMETERS)
def test_encode_survives_json(value):
    returned = decode(json.loads(json.dumps(encode("value", value), allow_nan=False)))
    assert repr(returned) == repr(value)  # repr: NaN equals NaN, 1 differs from True


@pytest.mark.parametrize(
    "value",
    [
        range(2, 9, 3),
        np.arange(3),
        np.array([[0.5, np.inf]], np.float32),
        np.array(["a", "bc"]),
        np.array(["a", "bc"], dtype=object),
        np.array([True, False]),
    ],
)
def test_encode_keeps_ranges_and_arrays(value):
    returned = decode(json.loads(json.dumps(encode("value", value), allow_nan=False)))
    assert repr(returned) == repr(value)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Fraction(1, 4), 0.25),
        (np.longdouble(0.5), 0.5),
        (MappingProxyType({0: 1}), {0: 1}),
        (np.array([3, 7], object), np.array([3, 7], object)),
    ],
)
def test_encode_makes_plain_numbers_of_others(value, plain):
    assert repr(decode(encode("value", value))) == repr(plain)


@pytest.mark.parametrize("value", [object(), len, {1, 2}, 1j, b"x", [np.array([1j])]])
def test_encode_refuses_other_types(value):
    with pytest.raises(TypeError, match="value must"):
        encode("value", value)


@pytest.mark.parametrize("items", [[2**70 + 1, 5], [2**53 + 1, 0.5]])
def test_encode_refuses_objects_that_no_array_of_numbers_holds(items):
    with pytest.raises(TypeError, match="value must hold numbers or strings"):
        encode("value", np.array(items, object))
