"""The fate of every kind of value."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from privfeat.preprocessing.declaration import parse_columns
from privfeat.preprocessing.values import outputs_of

SECRET = "1234567 secret"


def column(kind, **more):
    (parsed,) = parse_columns({"x": {"kind": kind, **more}})
    return parsed


def objects(*values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


def made(declared, *values):
    """Return the first features of values, alike as objects one by one and together."""
    found = outputs_of(declared, objects(*values))
    each = [outputs_of(declared, objects(value)) for value in values]
    np.testing.assert_array_equal(found, np.vstack(each))
    return found.tolist()


NUMBER = column("numeric", bounds=[-2, 2])
ABSENT = (None, np.nan, "", "  ", pd.NA, pd.NaT, Decimal("NaN"), "NA", " null ", "#N/A")


@pytest.mark.parametrize(
    "value",
    [1, 1.0, "1", " 1.0 ", "1e0", np.float32(1), np.int8(1), Decimal(1)],
)
def test_number_is_scaled_by_its_bounds(value):
    assert made(NUMBER, value) == [[0.5]]


@pytest.mark.parametrize("value", [np.inf, 3, "inf", "1e999", 10**400, 2.0001])
def test_number_out_of_bounds_is_clipped(value):
    assert made(NUMBER, value) == [[1]]
    low = f"-{value}" if isinstance(value, str) else -value
    assert made(NUMBER, low) == [[-1]]


@pytest.mark.parametrize(
    "value", [SECRET, True, np.True_, "3,5", "1_0", b"1", [1], 1j, dt.date(2020, 1, 1)]
)
@pytest.mark.parametrize("kind", ["numeric", "integer"])
def test_number_of_another_type_is_refused(kind, value):
    with pytest.raises(TypeError, match="column 'x' of kind") as caught:
        outputs_of(column(kind, bounds=[0, 1]), objects(value))
    assert "1234567" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "values",
    [
        np.array(["2020-01-01"], "datetime64[ns]"),
        np.array([1], "timedelta64[ns]"),
        np.array([1, np.timedelta64(1, "Y")], object),
        np.array([1j]),
        np.array([True]),
    ],
)
def test_arrays_that_are_no_numbers_are_refused(values):
    with pytest.raises(TypeError, match="must hold numbers"):
        outputs_of(NUMBER, values)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float32", "float64"])
def test_arrays_of_numbers_are_read_as_their_values(dtype):
    assert outputs_of(NUMBER, np.array([1, 2], dtype)).tolist() == [[0.5], [1]]


def test_integer_refuses_fractions():
    whole = column("integer", bounds=[0, 4])
    assert made(whole, 3, "3", 3.0, "3.0", "9" * 400) == [[0.5]] * 4 + [[1]]
    for value in (2.5, "2.5"):
        with pytest.raises(TypeError, match="whole numbers"):
            outputs_of(whole, objects(value))


def test_log_scales_logarithms():
    log = column("numeric", bounds=[1, 100], treatment="log")
    assert made(log, 10, 100, 0, -5) == [[0], [1], [-1], [-1]]


KINDS = {
    "numeric": {"bounds": [0, 10]},
    "integer": {"bounds": [0, 10]},
    "boolean": {},
    "category": {"categories": ["a", "b"]},
    "date": {"bounds": ["2000-01-01", "2001-01-01"]},
}


@pytest.mark.parametrize("kind", KINDS)
def test_missing_value_is_refused_unless_declared(kind):
    for value in ABSENT:
        with pytest.raises(ValueError, match="'x' must have no missing value"):
            outputs_of(column(kind, **KINDS[kind]), objects(value))


@pytest.mark.parametrize("kind", KINDS)
def test_missing_value_becomes_what_is_declared(kind):
    wide = 2 if kind == "category" else 1
    neutral = column(kind, **KINDS[kind], missing="neutral")
    assert made(neutral, *ABSENT) == [[0] * wide] * len(ABSENT)
    beside = column(kind, **KINDS[kind], missing="indicator")
    assert made(beside, *ABSENT) == [[0] * wide + [1]] * len(ABSENT)
    assert beside.outputs[-1] == "x_missing"


@pytest.mark.parametrize(
    ("kind", "constant"),
    [
        ("numeric", 7.5),
        ("integer", 7),
        ("boolean", True),
        ("category", "b"),
        ("date", "2000-03-01"),
    ],
)
def test_missing_value_counts_as_a_constant(kind, constant):
    declared = column(kind, **KINDS[kind], missing=constant)
    assert made(declared, None, "") == made(declared, constant, constant)


@pytest.mark.parametrize("kind", KINDS)
def test_further_texts_and_numbers_mean_a_missing_value(kind):
    said = {"missing": "indicator", "missing_values": ["N/A", -999]}
    declared = column(kind, **KINDS[kind], **said)
    found = made(declared, "N/A", " N/A", -999, "-999", -999.0)
    assert [row[-1] for row in found] == [1] * 5
    if kind in ("numeric", "integer"):
        assert outputs_of(declared, np.array([-999, 5])).tolist() == [[0, 1], [0, 0]]
        assert made(declared, "-999.0") == [[0, 1]]


@pytest.mark.parametrize("listed", [9, "9", 9.0, "9.0"])
@pytest.mark.parametrize("kind", ["numeric", "integer", "boolean", "category"])
def test_a_missing_value_is_one_in_each_form_that_files_have(kind, listed):
    """One empty cell makes 9.0 of each 9 of a column."""
    said = {"missing": "indicator", "missing_values": [listed]}
    declared = column(kind, **KINDS[kind], **said)
    found = made(declared, 9, "9", 9.0, "9.0", np.int8(9), np.float32(9))
    assert [row[-1] for row in found] == [1] * 6
    for dtype in (np.int64, np.float32):
        assert outputs_of(declared, np.array([9, 9], dtype))[:, -1].tolist() == [1, 1]


def test_a_missing_date_is_one_in_each_form():
    """One date that cannot be read makes texts of all that a program reads."""
    said = {"missing": "indicator", "missing_values": ["1900-01-01", "9999-12-31"]}
    declared = column("date", **KINDS["date"], **said)
    days = np.array(["1900-01-01", "9999-12-31", "2001-01-01"], "datetime64[s]")
    forms = days, days.astype("datetime64[us]"), days.astype(str), days.astype(object)
    for form in forms:
        assert outputs_of(declared, form)[:, -1].tolist() == [1, 1, 0]
    assert made(declared, "1900-01-01T00:00:00Z")[0][-1] == 1


def test_boolean_becomes_minus_one_or_one():
    boolean = column("boolean")
    true = (True, np.True_, 1, 1.0, "1", "1.0", "true", "TRUE", " Yes")
    false = (False, np.False_, 0, 0.0, "0", "0.0", "false", "no")
    assert made(boolean, *true) == [[1]] * len(true)
    assert made(boolean, *false) == [[-1]] * len(false)
    assert outputs_of(boolean, np.array([True, False])).tolist() == [[1], [-1]]
    for value in (2, "maybe", SECRET, b"1", dt.date(2020, 1, 1), []):
        with pytest.raises(TypeError, match="true and false, yes and no"):
            outputs_of(boolean, objects(value))


def test_category_is_compared_as_text():
    category = column("category", categories=["a", 3, "2.5"])
    found = made(category, " a", 3, 3.0, "3", Decimal(3), np.int8(3), 2.5, "2.5")
    assert found == [[1, 0, 0]] + [[0, 1, 0]] * 5 + [[0, 0, 1]] * 2
    assert category.outputs == ["x_a", "x_3", "x_2.5"]
    assert made(category, "3.0", " 3.00 ") == [[0, 1, 0]] * 2
    versions = column("category", categories=["2.10", "2.1", "03.0", "-0"])
    assert versions.outputs == ["x_2.10", "x_2.1", "x_03.0", "x_-0"]
    for value in (True, b"a", dt.date(2020, 1, 1)):
        with pytest.raises(TypeError, match="texts or numbers"):
            outputs_of(category, objects(value))


def test_unseen_category_becomes_what_is_declared():
    refuses = column("category", categories=["a", "b"])
    with pytest.raises(ValueError, match="categories that are declared, got anot") as e:
        outputs_of(refuses, objects(SECRET))
    assert "1234567" not in str(e.value)
    assert e.value.__context__ is None
    neutral = column("category", categories=["a", "b"], unseen="neutral")
    assert made(neutral, SECRET, 4, "b") == [[0, 0], [0, 0], [0, 1]]
    other = column("category", categories=["a", "b"], unseen="b")
    assert made(other, SECRET, 4, "a") == [[0, 1], [0, 1], [1, 0]]


DAY = column("date", bounds=["2020-01-01", "2020-01-03T00:00Z"])


@pytest.mark.parametrize(
    "value",
    [
        "2020-01-02",
        "2020-01-02T00:00",
        "2020-01-02T02:00+02:00",
        "2020-01-01 23:00:00-01:00",
        dt.date(2020, 1, 2),
        dt.datetime(2020, 1, 2),
        dt.datetime(2020, 1, 2, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        pd.Timestamp("2020-01-02T02:00+02:00"),
    ],
)
def test_date_is_scaled_by_its_bounds_in_utc(value):
    assert made(DAY, value) == [[0]]


@pytest.mark.parametrize("year", [1700, 1969, 2024, 2261])
def test_a_time_is_one_number_in_every_unit(year):
    """One record that has nanoseconds gives all of a table that unit."""
    rng = np.random.default_rng(0)
    start = np.datetime64(f"{year}-01-01", "us")
    times = start + rng.integers(0, 10**12, size=500).astype("timedelta64[us]")
    fine = times.astype("datetime64[ns]") + np.timedelta64(999, "ns")
    since = column("date", bounds=["1700-01-01", "2262-01-01"])
    expected = outputs_of(since, times)
    forms = [fine, times.astype(object), [pd.Timestamp(time) for time in fine]]
    forms += [times.astype(str), fine.astype("datetime64[100ns]")]
    for form in forms:
        form = objects(*form) if isinstance(form, list) else form
        np.testing.assert_array_equal(outputs_of(since, form), expected)


def test_arrays_of_dates_are_read_as_single_ones():
    days = np.array(["2020-01-02", "NaT", "2050-01-01"], "datetime64[D]")
    neutral = column("date", bounds=["2020-01-01", "2020-01-03"], missing="neutral")
    for unit in ("D", "s", "ns"):
        found = outputs_of(neutral, days.astype(f"datetime64[{unit}]"))
        assert found.tolist() == [[0], [0], [1]]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "25s", "s", "ms"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_dates_far_away_are_at_the_bounds(unit, order):
    """Not a date of our time, as what does not fit into microseconds would be."""
    neutral = column("date", bounds=["2020-01-01", "2020-01-03"], missing="neutral")
    ticks = np.array([2**62, -(2**62), -(2**63)], np.int64)
    dates = ticks.view(f"datetime64[{unit}]").astype(f"{order}M8[{unit}]")
    assert outputs_of(neutral, dates).tolist() == [[1], [-1], [0]]


@pytest.mark.parametrize("unit", ["D", "h", "m", "30s", "s", "ms", "us", "ns"])
def test_dates_of_every_unit_are_the_same(unit):
    found = outputs_of(DAY, np.array(["2020-01-02"], f"datetime64[{unit}]"))
    assert found.tolist() == [[0]]
    months = np.array(["2020-01"], "datetime64[M]")
    assert outputs_of(DAY, months).tolist() == [[-1]]
    assert outputs_of(DAY, np.array(["2020"], "datetime64[Y]")).tolist() == [[-1]]


@pytest.mark.parametrize("value", ["02/01/2020", 43831, 1577836800.0, SECRET, "2020"])
def test_date_of_another_form_is_refused(value):
    with pytest.raises(TypeError, match="ISO 8601") as caught:
        outputs_of(DAY, objects(value))
    assert "1234567" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_finite_and_no_larger_than_one(kind):
    declared = column(kind, **KINDS[kind], missing="neutral")
    typed = [*ABSENT, "2000-06-01" if kind == "date" else 1]
    if kind == "category":
        typed[-1] = "a"
    if kind in ("numeric", "integer"):
        typed += [np.inf, -np.inf, 1e308, -1e308, 0]
    found = np.array(made(declared, *typed))
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 1
