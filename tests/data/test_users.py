"""Whose file is whose, as a table says."""

import pytest

from privfeat.data.users import read_users

FILES = ["train/a/1.png", "train/a/2.png", "train/b/3.png"]


def table(tmp_path, text):
    path = tmp_path / "users.csv"
    path.write_text(text)
    return path


def test_spaces_around_a_name_make_no_other_user(tmp_path):
    """Two users would each get the guarantee of one."""
    rows = "file,user\ntrain/a/1.png,p 1\ntrain/a/2.png,p 1 \ntrain/b/3.png,\u00a0p 1\n"
    assert read_users(table(tmp_path, rows), FILES) == ["p 1"] * 3


def test_two_spellings_of_a_name_make_no_other_user(tmp_path):
    """One system writes the accent with its letter, another one behind it."""
    rows = "".join(
        f"{file},{name}\n"
        for file, name in zip(FILES, ["Jos\u00e9", "Jose\u0301", "Jose"], strict=True)
    )
    users = read_users(table(tmp_path, f"file,user\n{rows}"), FILES)
    assert users == ["Jos\u00e9", "Jos\u00e9", "Jose"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,user\ntrain/a/1.png,x\ntrain/a/2.png,  \n", "none for train/a/2.png"),
        ("file,user\ntrain/a/1.png,x\ntrain/a/2.png,NA\n", "none for train/a/2.png"),
        ("file,user,user\ntrain/a/1.png,x,y\n", "each column once"),
        ("file,file,user\ntrain/a/1.png,z,y\n", "each column once"),
    ],
)
def test_a_table_that_is_not_clear_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_users(table(tmp_path, text), FILES)
