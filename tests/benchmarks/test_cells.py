"""A benchmark that was stopped continues where it was."""

import argparse
import json
from pathlib import Path

import _results
import pytest


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(_results, "_PRINTED", {})
    return tmp_path / "cells.json"


def test_cells_in_the_file_are_not_measured_again(path):
    first = _results.Cells(path, {"repeats": 5})
    assert first.get("a", lambda: [1.0]) == [1.0]
    # as if the process ended here
    assert json.loads(path.read_text())["cells"] == {"a": [1.0]}
    second = _results.Cells(path, {"repeats": 5})
    assert second.get("a", pytest.fail) == [1.0]
    assert second.get("b", lambda: [2.0]) == [2.0]
    assert json.loads(path.read_text())["cells"] == {"a": [1.0], "b": [2.0]}


def test_cells_of_other_settings_are_refused(path):
    _results.Cells(path, {"repeats": 5}).get("a", lambda: [1.0])
    with pytest.raises(SystemExit, match="same settings"):
        _results.Cells(path, {"repeats": 6})


def test_tables_of_an_earlier_part_stay(path, monkeypatch):
    kept = _results.Cells(path, {})
    _results.markdown_table(["x"], [["1"]], "first")
    kept.save()
    monkeypatch.setattr(_results, "_PRINTED", {})
    kept = _results.Cells(path, {})
    _results.markdown_table(["x"], [["2"]], "second")
    kept.get("a", lambda: 1)
    _results.keep_tables(path)
    assert list(json.loads(path.read_text())["tables"]) == ["first", "second"]


def test_cells_without_a_file_are_measured(path):
    kept = _results.Cells(None, {})
    assert kept.get("a", lambda: 3) == 3
    kept.save()
    assert not path.exists()


def test_settings_name_files_and_leave_out_what_changes_no_cell():
    args = argparse.Namespace(
        features=[Path("/data/a.h5")], repeats=5, out=Path("x"), sizes=(1, 2), most=3
    )
    found = _results.settings_of(args, "most")
    assert found == {"features": ["a.h5"], "repeats": 5, "sizes": [1, 2]}


def test_accuracy_prints_what_was_measured_below_its_commands(monkeypatch, capsys):
    accuracy = pytest.importorskip("accuracy")
    monkeypatch.setattr("sys.argv", ["accuracy.py"])
    accuracy.main()
    printed = capsys.readouterr().out
    for script in ("few", "prior", "rare", "regression", "users", "views"):
        assert f"`python benchmarks/{script}.py " in printed, script
    assert "speed.py" not in printed


def test_lists_of_scalars_take_one_line_and_stay_the_same(path):
    content = {"a": [1.5, 2], "words": ["x  y", "p [z]", 'q"\n'], "deep": [[1], []]}
    _results.write_json(path, content)
    text = path.read_text()
    assert '"a": [1.5, 2]' in text
    found = json.loads(text)
    assert {key: found[key] for key in content} == content
