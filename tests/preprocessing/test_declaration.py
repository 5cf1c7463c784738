import datetime as dt

import pytest

from privfeat import PublicColumns
from privfeat.preprocessing.declaration import parse_columns

NUMBER = {"kind": "numeric", "bounds": [0, 1]}
CATEGORY = {"kind": "category", "categories": ["a", "b"]}
DATE = {"kind": "date", "bounds": ["2020-01-01", "2021-01-01"]}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, "kind of column 'x' must be a string, got None"),
        ({"kind": "?"}, "must be one of 'numeric', 'integer', .* got '\\?'"),
        ({"kind": "text"}, "must not be text, whose words are not public. Declare it"),
        ({"kind": "numeric"}, "bounds of column 'x' must be two finite .* got None"),
        (NUMBER | {"bounds": [1, 0]}, "the smaller first, got \\[1, 0\\]. Give what"),
        (NUMBER | {"bounds": [0, float("nan")]}, "two finite numbers"),
        (NUMBER | {"bounds": [0, float("inf")]}, "two finite numbers"),
        (NUMBER | {"bounds": [-1e308, 1e308]}, "two finite numbers"),
        (NUMBER | {"bounds": [0, 10**400]}, "two finite numbers"),
        (NUMBER | {"bounds": [False, True]}, "two finite numbers"),
        (NUMBER | {"bounds": ["?", "?"]}, "two finite numbers"),
        (NUMBER | {"bounds": [0, 1, 2]}, "two finite numbers"),
        (NUMBER | {"bounds": 1}, "two finite numbers"),
        (
            NUMBER | {"treatment": "log"},
            "must be > 0 for treatment log, got \\[0, 1\\]",
        ),
        (NUMBER | {"treatment": "none"}, "treatment of column 'x' must be one of"),
        (NUMBER | {"unit": 3}, "unit of column 'x' must be text, got 3"),
        (NUMBER | {"bound": 3}, "must declare only bounds, kind, .* got 'bound'"),
        (NUMBER | {"categories": ["a", "b"]}, "got 'categories'. Leave it out"),
        ({"kind": "ignored", "bounds": [0, 1]}, "declare only kind, got 'bounds'"),
        (DATE | {"bounds": ["?", "?"]}, "must be two dates, the smaller first"),
        (DATE | {"bounds": [0, 1]}, "must be two dates, the smaller first"),
        (CATEGORY | {"categories": ["?"]}, "at least 2 different texts"),
        (CATEGORY | {"categories": ["a", " a"]}, "at least 2 different texts"),
        (CATEGORY | {"categories": ["a", "neutral"]}, "none of refuse, neutral"),
        (CATEGORY | {"categories": ["a", True]}, "at least 2 different texts"),
        (CATEGORY | {"categories": "ab"}, "at least 2 different texts"),
        (CATEGORY | {"unseen": "c"}, "unseen of column 'x' must be .* got 'c'"),
        (CATEGORY | {"missing": "c"}, "missing of column 'x' must be .* got 'c'"),
        (NUMBER | {"missing": 2}, "or within its bounds, got 2"),
        (NUMBER | {"missing": "zero"}, "got 'zero'"),
        (NUMBER | {"missing": True}, "got True"),
        (NUMBER | {"kind": "integer", "missing": 0.5}, "got 0.5"),
        ({"kind": "boolean", "missing": 1}, "got 1"),
        (DATE | {"missing": "1999-01-01"}, "got '1999-01-01'"),
        (NUMBER | {"missing_values": "NA"}, "must be a list of texts and numbers"),
        (NUMBER | {"missing_values": [None]}, "must be a list of texts and numbers"),
        ("numeric", "column 'x' must be declared by a mapping, got 'numeric'"),
    ],
)
def test_declaration_refuses_what_is_not_complete(said, words):
    with pytest.raises((TypeError, ValueError), match=words):
        parse_columns({"x": said})
    columns = PublicColumns({"x": said})  # is checked when it is used
    with pytest.raises((TypeError, ValueError), match=words):
        columns.fit([[1]])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (None, "columns must be a mapping of names to declarations, got NoneType"),
        ([NUMBER], "must be a mapping of names to declarations, got list"),
        ({1: NUMBER}, "must have names of text, got 1"),
        ({}, "must declare a column that is not ignored"),
        ({"x": {"kind": "ignored"}}, "must declare a column that is not ignored"),
        ({"x": CATEGORY, "x_a": NUMBER}, "different names, got 'x_a' twice"),
    ],
)
def test_declarations_of_all_columns_are_refused(columns, words):
    with pytest.raises((TypeError, ValueError), match=words):
        parse_columns(columns)


def test_dates_of_a_declaration_may_be_dates():
    bounds = (dt.date(2020, 1, 1), dt.datetime(2020, 1, 2, tzinfo=dt.UTC))
    (column,) = parse_columns({"x": {"kind": "date", "bounds": bounds}})
    assert column.bounds[1] - column.bounds[0] == 24 * 3600
