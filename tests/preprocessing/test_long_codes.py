"""Codes of 2**53 and more, of which a gap in their column makes rounded floats."""

from decimal import Decimal
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from privfeat import HashKFold, PublicColumns
from privfeat.data.users import ids_of
from privfeat.preprocessing.values import outputs_of
from tests.preprocessing.test_values import column, made, objects

LONG = 32506021000036107


def test_long_codes_are_whole_numbers_or_texts():
    category = column("category", categories=[LONG, LONG + 1])
    codes = (LONG, LONG + 1, np.int64(LONG), str(LONG), Decimal(LONG))
    assert made(category, *codes) == [[1, 0], [0, 1], [1, 0], [1, 0], [1, 0]]


@pytest.mark.parametrize("missing", [[], [LONG]])
@pytest.mark.parametrize("code", [float(LONG), str(float(LONG)), "9007199254740992.0"])
def test_long_codes_that_a_gap_made_floats_are_refused(code, missing):
    """A column of whole numbers becomes one of floats, in which two codes are one."""
    categories = ["a", LONG - 1, 2**53]
    category = column("category", categories=categories, missing_values=missing)
    with pytest.raises(TypeError, match="and more, as texts"):
        outputs_of(category, objects(code))


def test_large_numbers_stand_beside_long_missing_values():
    number = column("numeric", bounds=[0, 1e20], missing_values=[LONG])
    values = (1e20, "1e+20", Decimal("1E+30"), Decimal("1E+9999"))
    assert made(number, *values) == [[1.0]] * 4


def test_short_codes_may_have_exponents():
    category = column("category", categories=["1e+05", "2"])
    assert made(category, "1e+05", "2") == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "declared",
    [
        {"kind": "numeric", "bounds": [-1, 1], "missing_values": [-0.1]},
        {"kind": "category", "categories": ["0.1", "0.2"], "unseen": "neutral"},
    ],
)
def test_a_number_that_a_type_rounds_is_refused(declared):
    """A reader chooses float32 unless one record has more digits."""
    kind, options = declared["kind"], {k: v for k, v in declared.items() if k != "kind"}
    values = np.array([0.5, 0.25])
    one = column(kind, missing="neutral", **options)
    outputs_of(one, values)
    for narrow in (np.float32, np.float16):
        with pytest.raises(TypeError, match="got something else"):
            outputs_of(one, values.astype(narrow))
    whole = column("numeric", bounds=[-1, 1], missing="neutral", missing_values=[-9])
    assert outputs_of(whole, np.array([-9.0, 1.0], np.float32)).tolist() == [[0], [1]]


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
@pytest.mark.parametrize("gap", [None, 0.5])
@pytest.mark.parametrize(
    "declared",
    [
        {"kind": "numeric", "bounds": [-1, 1], "missing_values": [-0.1]},
        {"kind": "category", "categories": ["-0.1", "0.5"], "unseen": "neutral"},
    ],
)
def test_it_is_refused_in_the_types_of_pandas(declared, backend, gap):
    """They hand on the rounded number as an object, or as a float of 64 bits."""
    columns = PublicColumns({"a": {**declared, "missing": "neutral"}})
    numbers = pd.Series([-0.1, 0.5, gap], dtype="Float64")
    columns.fit(numbers.to_frame("a"))
    narrow = {"downcast": "float", "dtype_backend": backend}
    rounded = pd.to_numeric(numbers.astype(object), **narrow)
    kept = pd.to_numeric(pd.Series([-0.1, 0.5, 1234567.891]), **narrow)
    assert "64" not in str(rounded.dtype)
    for wrong in (rounded, rounded.astype(object), rounded.astype("category")):
        with pytest.raises(TypeError, match="got something else"):
            columns.transform(wrong.to_frame("a"))
    columns.transform(kept.to_frame("a"))


@pytest.mark.parametrize("dtype", ["Int64", "UInt64", "int64", "int64[pyarrow]"])
def test_long_whole_numbers_of_pandas_are_no_codes(dtype):
    """``read_csv`` rounds all of them for one that is written as 5.0."""
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    text = f"code\n{LONG}\n5.0\n"
    exact, rounded = (
        pd.read_csv(StringIO(part), dtype={"code": dtype}) for part in (text[:-4], text)
    )
    assert int(exact["code"][0]) != int(rounded["code"][0])
    said = {"kind": "category", "categories": [LONG, "A"], "unseen": "neutral"}
    columns = PublicColumns({"code": said})
    for table in (
        exact,
        rounded,
        rounded.astype("category"),
        rounded.astype(object),
    ):
        with pytest.raises(TypeError, match="and more, as texts"):
            columns.fit_transform(table)
        for users in (table["code"], table["code"].array):
            with pytest.raises(ValueError, match="Pass them as texts"):
                ids_of(users)
            with pytest.raises(ValueError, match="Pass them as texts"):
                next(HashKFold(2, key=1).split(table, groups=users))
    text = exact["code"].astype(str)
    assert columns.fit_transform(text.to_frame()).tolist() == [[1.0, 0.0]]
    assert ids_of(text).tolist() == [str(LONG)]
    short = exact.assign(code=exact["code"] - LONG + 7)
    assert columns.fit_transform(short).tolist() == [[0.0, 0.0]]
