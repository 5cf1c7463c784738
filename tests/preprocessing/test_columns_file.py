import pytest

from privfeat.preprocessing import draft_columns, read_columns
from privfeat.preprocessing.declaration import parse_columns

FILE = """
[age]
kind = "integer"
bounds = [0, 120]
unit = "years"

["date of visit"]
kind = "date"
bounds = [2000-01-01, 2030-12-31T00:00:00+02:00]
missing = 2010-01-01
"""


def test_columns_are_read_as_json_has_them(tmp_path):
    path = tmp_path / "columns.toml"
    path.write_text(FILE)
    columns = read_columns(path)
    assert list(columns) == ["age", "date of visit"]
    assert columns["date of visit"]["bounds"] == [
        "2000-01-01",
        "2030-12-31T00:00:00+02:00",
    ]
    assert parse_columns(columns)[1].fill == 1262304000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[age", "columns.toml must be a TOML file: Expected"),
        (b"\xff", "columns.toml must be in UTF-8.* Save it so"),
        (b"a = [1", "columns.toml must be a TOML file.* a list is closed"),
        (
            b"[age]\nkind = 'number'",
            "columns.toml: kind of column 'age' must be one of",
        ),
        (b"age = 3", "columns.toml: column 'age' must be declared by a mapping, got 3"),
    ],
)
def test_columns_that_are_refused_name_their_file(tmp_path, text, words):
    path = tmp_path / "columns.toml"
    path.write_bytes(text)
    with pytest.raises((TypeError, ValueError), match=words):
        read_columns(path)


@pytest.mark.parametrize("kind", ["numeric", "integer", "category", "date", None])
def test_draft_is_refused_until_it_is_filled_in(tmp_path, kind):
    path = tmp_path / "columns.toml"
    path.write_text(draft_columns({"seen before": "boolean", "xy": kind}))
    with pytest.raises((TypeError, ValueError), match="column 'xy' must be"):
        read_columns(path)


def test_draft_says_what_may_be_said_of_a_column_of_unknown_kind():
    draft = draft_columns({"xy": None})
    for key in ("kind", "bounds", "treatment", "categories", "unseen", "missing"):
        assert f"{key} = " in draft
    assert "of dates, such as [2020-01-01, 2025-12-31]" in draft
    assert "predict refuses next month" in draft


def test_draft_keeps_any_name(tmp_path):
    names = ["a", "b c", 'q"uo\\te', "é", "", "[x]", "new\nline", "\x7f", "1"]
    path = tmp_path / "columns.toml"
    path.write_text(draft_columns(dict.fromkeys(names, "boolean")))
    assert list(read_columns(path)) == names
