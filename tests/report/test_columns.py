import datetime

import pytest

from privfeat.report.columns import columns_of

HEIGHT = {"kind": "numeric", "bounds": [0.5, 2.5], "unit": "m"}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (HEIGHT, ("number", "0.5 to 2.5 m", "refused", "cut to the range")),
        (
            HEIGHT | {"treatment": "log", "missing": 1.7, "missing_values": ["NA", -9]},
            (
                "number, by its logarithm",
                "0.5 to 2.5 m",
                "counts as 1.7 (so does: NA, -9)",
                "cut to the range",
            ),
        ),
        (
            {"kind": "category", "categories": ["a", "b"], "unseen": "neutral"},
            ("category", "a, b", "refused", "counts as none of them"),
        ),
        (
            {"kind": "category", "categories": ["a", "b"], "unseen": "b"},
            ("category", "a, b", "refused", "counts as b"),
        ),
        (
            {"kind": "category", "categories": ["a", "b"], "missing": "neutral"},
            ("category", "a, b", "counts as none of them", "refused"),
        ),
        (
            {"kind": "boolean", "missing": "indicator"},
            ("yes or no", "", "counts as the middle, and is marked", "refused"),
        ),
        (
            {
                "kind": "date",
                "bounds": [datetime.date(1900, 1, 1), datetime.date(2030, 1, 1)],
            },
            ("date", "1900-01-01 to 2030-01-01", "refused", "cut to the range"),
        ),
        ({"kind": "ignored"}, ("not read", "", "", "")),
    ],
)
def test_columns_of_says_what_becomes_of_each_value(said, shown):
    (row,) = columns_of({"columns": {"it": said}, "target": None})
    assert tuple(row.values()) == ("it", *shown)


def test_columns_of_begins_with_the_class():
    table = {"columns": {"a": HEIGHT, "b": {"kind": "boolean"}}, "target": "b"}
    assert [row["column"] for row in columns_of(table)] == ["b (the class)", "a"]
