"""No number out of its range, and no NaN, passes a check of parameters."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from privfeat._checks import (
    check_between,
    check_bool,
    check_called,
    check_choice,
    check_int,
    check_positive,
    check_real,
    optional,
    require,
)

NAN, INF = math.nan, math.inf
NO_NUMBERS = [True, False, np.True_, "1", None, 1j, [1.0], Decimal(1), np.zeros(1)]
NO_INTEGERS = [*NO_NUMBERS, 1.0, NAN, Fraction(1)]


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_real_number_is_refused(value):
    for check in (check_positive, lambda n, v: check_real(n, v, low=0.0)):
        with pytest.raises(TypeError, match="x must be a real number"):
            check("x", value)


@pytest.mark.parametrize("include_low", [True, False])
@pytest.mark.parametrize("include_high", [True, False])
@pytest.mark.parametrize("kind", [float, int, np.float32, np.int64, Fraction])
def test_ends_of_an_interval_count_as_told(include_low, include_high, kind):
    def check(value):
        ends = {"include_low": include_low, "include_high": include_high}
        return check_real("x", value, low=-1.0, high=2.0, **ends)

    assert type(check(kind(1))) is float
    for end, included in ((kind(-1), include_low), (kind(2), include_high)):
        if included:
            assert check(end) == float(end)
            continue
        with pytest.raises(ValueError, match=r"x must be in [\[(]-1, 2[\])], got"):
            check(end)


@pytest.mark.parametrize(
    "value", [NAN, np.float32(NAN), -INF, INF, 10**400, -(10**400)]
)
def test_what_is_no_finite_number_is_in_no_bounded_interval(value):
    for check in (
        lambda: check_real("x", value, low=-1e300, high=1e300),
        lambda: check_between("x", value, -INF, INF),
        lambda: check_positive("x", value),
    ):
        with pytest.raises(ValueError, match="x must be "):
            check()


def test_infinity_is_in_an_interval_that_holds_it():
    assert check_real("x", INF, low=0.0) == INF
    with pytest.raises(ValueError, match=r"x must be finite and > 0, got inf\."):
        check_positive("x", INF)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -5e-324, 1.0 + 2**-52])
def test_ends_and_beyond_are_not_between(value):
    with pytest.raises(ValueError, match=r"rate must be in \(0, 1\), got"):
        check_between("rate", value, 0.0, 1.0)
    assert check_between("rate", 5e-324, 0.0, 1.0) == 5e-324


def test_a_remedy_ends_the_message():
    with pytest.raises(ValueError, match=r"got 0\.0\. Pass 1\.$"):
        check_positive("x", 0.0, remedy="Pass 1.")


@pytest.mark.parametrize("value", NO_INTEGERS)
def test_what_is_no_integer_is_refused(value):
    with pytest.raises(TypeError, match="n must be an integer"):
        check_int("n", value, low=0)


def test_integers_are_those_of_an_interval_with_its_ends():
    for value in (2, np.int8(5), np.uint64(3)):
        assert check_int("n", value, low=2, high=5) == value
        assert type(check_int("n", value, low=2, high=5)) is int
    for value in (1, 6, 10**400, np.int64(-3)):
        with pytest.raises(ValueError, match=r"n must be in \[2, 5\], got"):
            check_int("n", value, low=2, high=5)
    with pytest.raises(ValueError, match=r"n must be in \[0, 2147483647\]"):
        check_int("n", 2**31, low=0)


def test_choices_are_strings_that_were_named():
    assert check_choice("c", "a", ("a", "b")) == "a"
    with pytest.raises(ValueError, match=r"c must be one of 'a', 'b', got 'A'\."):
        check_choice("c", "A", ("a", "b"))
    for value in (None, 1, ["a"]):
        with pytest.raises(TypeError, match="c must be a string"):
            check_choice("c", value, ("a", "b"))


def test_booleans_are_no_numbers():
    assert [check_bool("b", value) for value in (True, np.False_)] == [True, False]
    for value in (1, 0.0, "True", None):
        with pytest.raises(TypeError, match="b must be True or False"):
            check_bool("b", value)


@pytest.mark.parametrize("function", [print, dict, divmod, lambda a, b=1, *c: 0])
def test_what_can_be_called_is_taken(function):
    """``dict`` has no signature."""
    check_called("on_step", function, "step", "model")


@pytest.mark.parametrize(
    "function", ["print", None, lambda step: 0, lambda a, b, c: 0, lambda a, *, b: 0]
)
def test_what_cannot_be_called_so_is_refused(function):
    with pytest.raises(TypeError, match=r"on_step must be .* on_step\(step, model\)"):
        check_called("on_step", function, "step", "model")


def test_none_alone_is_left_out():
    check = optional(check_positive)
    assert check("x", None) is None
    assert check("x", 2) == 2.0
    with pytest.raises(ValueError, match="x must be"):
        check("x", 0)


def test_what_is_not_installed_is_named_with_its_extra():
    require("a figure", "json", extra="plot")
    with pytest.raises(ImportError, match=r"a figure needs nowhere\. .*\[plot\]") as it:
        require("a figure", "nowhere", extra="plot")
    assert it.value.name == "nowhere"
