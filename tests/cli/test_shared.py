from pathlib import Path

import pytest

from privfeat.cli.shared.estimators import parse_settings
from privfeat.cli.shared.files import open_split, output_folder, split_argument
from privfeat.cli.shared.terminal import CommandError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("50", 50),
        ("0.5", 0.5),
        ("1e-3", 1e-3),
        ("true", True),
        ("False", False),
        ("none", None),
        ("softmax", "softmax"),
        ("'50'", "50"),
        ("(1, 2)", (1, 2)),
        ("{'gram': 0.1}", {"gram": 0.1}),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_parse_settings_reads_values(text, value):
    (parsed,) = parse_settings([f"name={text}"]).values()
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize("settings", [["n_iter"], ["=1"], ["a b=1"], ["a=1", "a=2"]])
def test_parse_settings_refuses_other_forms(settings):
    with pytest.raises(CommandError, match="--set must be name=value"):
        parse_settings(settings)


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("a.h5", ("a.h5", None)),
        ("a.h5:train", ("a.h5", "train")),
        ("C:\\data\\a.h5", ("C:\\data\\a.h5", None)),
        ("C:\\data\\a.h5:train", ("C:\\data\\a.h5", "train")),
        ("a:b/c.h5", ("a:b/c.h5", None)),
        ("a.h5:", ("a.h5:", None)),
    ],
)
def test_split_argument_finds_the_split(argument, expected):
    assert split_argument(argument) == expected


def test_split_argument_prefers_a_file_of_that_name(tmp_path):
    path = tmp_path / "a:b"
    path.touch()
    assert split_argument(str(path)) == (str(path), None)


def test_open_split_takes_the_preferred_split(features):
    assert open_split(features, preferred="test").name == "test"
    assert open_split(f"{features}:train", preferred="test").name == "train"


def test_open_split_asks_when_the_choice_is_open(features):
    with pytest.raises(CommandError, match=r"has no split 'valid'.*train"):
        open_split(features, preferred="valid")


def test_output_folder_removes_what_it_made_after_a_failure(tmp_path):
    with (
        pytest.raises(RuntimeError, match="inside"),
        output_folder(str(tmp_path / "a" / "b")),
    ):
        raise RuntimeError("inside")
    assert list(tmp_path.iterdir()) == []


def test_output_folder_tells_the_failure_where_another_process_removes_it_too(
    tmp_path, monkeypatch
):
    """A process of a job ended with 1 then, not with the 3 of a spent budget."""
    remove = Path.rmdir

    def after_another(self):
        remove(self)
        remove(self)

    monkeypatch.setattr(Path, "rmdir", after_another)
    with (
        pytest.raises(RuntimeError, match="inside"),
        output_folder(str(tmp_path / "a" / "b")),
    ):
        raise RuntimeError("inside")


def test_output_folder_keeps_what_was_there(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(RuntimeError), output_folder(str(tmp_path / "a")):
        raise RuntimeError
    assert (tmp_path / "a").is_dir()


def test_output_folder_refuses_a_file(tmp_path):
    (tmp_path / "a").touch()
    with (
        pytest.raises(CommandError, match="must be a folder"),
        output_folder(str(tmp_path / "a")),
    ):
        pytest.fail("the body must not run")
