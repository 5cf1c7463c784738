"""Each row of docs/pitfalls.md has tests, and each test has a row."""

import re
from pathlib import Path

_HERE = Path(__file__).parent
_PAGE = _HERE.parents[1] / "docs" / "pitfalls.md"


def _rows() -> set[str]:
    return {
        number.zfill(2)
        for number in re.findall(r"^\| (\d+) \|", _PAGE.read_text(), re.MULTILINE)
    }


def _numbers(kind: str) -> set[str]:
    """Return the numbers in the names of tests, ``kind`` being a pattern after them."""
    code = "\n".join(file.read_text() for file in _HERE.glob("test_*.py"))
    return set(re.findall(rf"^def test_(\d\d)_{kind}", code, re.MULTILINE))


def test_the_page_has_thirty_rows():
    assert _rows() == {f"{number:02}" for number in range(1, 31)}


def test_each_row_is_held_and_each_mistake_is_planted():
    assert _numbers("(?!notices)") == _rows()
    assert _numbers("notices") == _rows()
