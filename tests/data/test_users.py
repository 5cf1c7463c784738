"""Whose file is whose, as a table says."""

import pytest

from privfeat.data.users import read_users


@pytest.fixture
def table(tmp_path):
    def write(*rows):
        path = tmp_path / "users.csv"
        path.write_text("\n".join(["file,user", *rows]))
        return path

    return write


def test_spaces_make_no_other_user(table):
    """Else the records of one would be protected as those of two."""
    path = table("a.png,ann", "b.png,ann ", "c.png, ann", "d.png,ann b\u00a0")
    users = read_users(path, ["a.png", "b.png", "c.png", "d.png"])
    assert users == ["ann", "ann", "ann", "ann b"]


@pytest.mark.validation
@pytest.mark.parametrize("row", ["a.png", "a.png,", "a.png, "])
def test_a_file_needs_a_user(table, row):
    with pytest.raises(ValueError, match=r"has none for a\.png"):
        read_users(table(row), ["a.png"])
