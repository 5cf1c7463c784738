import pytest

from privfeat_extract.errors import ExtractError
from privfeat_extract.text.classes import read_classes

EXPECTED = {"lost_card": "I lost it", "arrival": "arrival"}
FILES = {
    "c.toml": 'lost_card = "I lost it"\narrival = ""\n',
    "c.json": '{"lost_card": "I lost it", "arrival": null}',
    "c.csv": "label,description\nlost_card,I lost it\narrival,\n",
}


@pytest.mark.parametrize("name", FILES)
def test_read_classes_takes_a_file_in_its_order(tmp_path, name):
    path = tmp_path / name
    path.write_text(FILES[name], encoding="utf-8")
    found = read_classes([str(path)])
    assert found == EXPECTED
    assert list(found) == list(EXPECTED)


def test_read_classes_makes_words_of_labels(tmp_path):
    assert read_classes(["lost_card", "b"]) == {"lost_card": "lost card", "b": "b"}
    (tmp_path / "c.json").write_text('["lost_card", "b"]')
    assert read_classes([str(tmp_path / "c.json")])["lost_card"] == "lost card"
    (tmp_path / "c.csv").write_text("label\nlost_card\nb\n")
    assert read_classes([str(tmp_path / "c.csv")])["lost_card"] == "lost card"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.toml", "a = ", "cannot be read"),
        ("c.json", "{", "cannot be read"),
        ("c.json", "3", "a list of labels, or a description of each"),
        ("c.json", "[1, 2]", "must be texts, got int"),
        ("c.toml", "a = 1\nb = 2", "must be texts, got int"),
        ("c.json", '["a"]', "at least 2 labels"),
        ("c.json", '["a", " "]', "at least 2 labels"),
        ("c.json", '["a", "a "]', "must be different, got 'a' twice"),
        ("c.csv", "name\na\nb\n", "must have the column label"),
        ("c.csv", "label\na,b\n", "must be a table in UTF-8"),
    ],
)
def test_read_classes_refuses(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ExtractError, match=message):
        read_classes([str(tmp_path / name)])
