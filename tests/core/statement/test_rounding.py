import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfeat.core.statement.rounding import rounded_down, rounded_up


@given(
    value=st.floats(1e-300, 1e300) | st.sampled_from([0.0, 1.0, 1e-5, 99.99999999]),
    digits=st.integers(1, 15),  # a float holds no more of every number,
)
def test_numbers_are_rounded_against_us(value, digits):
    down, up = (float(f(value, digits)) for f in (rounded_down, rounded_up))
    assert down <= value <= up
    assert up - down <= 10.0 ** (2 - digits) * value


@pytest.mark.parametrize("value", [0.25, 1e-5, 3.0, math.inf])
def test_what_has_few_digits_stays_as_it_is(value):
    assert float(rounded_up(value)) == float(rounded_down(value)) == value


def test_six_digits_are_shown_by_default():
    assert (rounded_up(2 / 3), rounded_down(2 / 3)) == ("0.666667", "0.666666")
