"""Every table of RESULTS.md is what its JSON prints, and says where it comes from."""

import importlib
import json
import re
import sys

import _results
import accuracy
import pytest
import table

TEXT = table.DOCUMENT.read_text(encoding="utf-8")
BLOCKS = list(table.BLOCK.finditer(TEXT))
FILES = sorted(_results.RESULTS.glob("*.json"))
# Made of other results, which may be measured again.
DERIVED = sorted(
    path.stem
    for path in table.DOCUMENT.parent.glob("[!_]*.py")
    if "fits nothing" in path.read_text(encoding="utf-8")
)
SOURCES = {"command", "commit", "source", "date", "python", "processor", "cores"}


def table_lines(text):
    return [line for line in text.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block["name"])
def test_table_is_what_its_file_prints(block):
    assert table.rewritten(block) == block[0]


def test_no_table_is_without_a_file():
    assert table_lines(TEXT) == [
        line for block in BLOCKS for line in table_lines(block["body"])
    ]
    # no marker is misspelt: each comment is the beginning or the end of a block
    assert TEXT.count("<!--") == 2 * len(BLOCKS)


@pytest.mark.parametrize("section", TEXT.split("\n## ")[1:], ids=lambda text: text[:20])
def test_section_names_command_commit_and_versions(section):
    """In the lines above its tables, or in words that point to the first section."""
    assert "python benchmarks/" in section or "a prototype" in section
    assert re.search(r"commit [0-9a-f]{7}", section)
    assert "jax 0." in section or "versions" in section


def test_accuracy_prints_what_the_sections_on_accuracy_show():
    subjects = "views|prior|public|few|rare|users|regression|recovered|texts"
    sections = [
        section
        for section in re.split(r"^##+ ", TEXT, flags=re.MULTILINE)
        if re.search(rf"(?i)\b({subjects})\b", section.splitlines()[0])
    ]
    assert len(sections) > 8
    named = re.findall(r"^`python benchmarks/(\w+)\.py", "".join(sections), re.M)
    assert set(named) <= set(accuracy.SCRIPTS)


def test_every_file_is_shown():
    assert {block["file"] for block in BLOCKS} == {path.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_says_where_it_comes_from(path):
    result = json.loads(path.read_text(encoding="utf-8"))
    assert all(result[key] for key in SOURCES)
    assert result["versions"].keys() >= {"jax", "numpy", "scikit-learn"}
    assert path.stat().st_size < 100_000
    for shown in result["tables"].values():
        assert {len(row) for row in shown["rows"]} == {len(shown["header"])}
    figures = result.keys() - SOURCES - {"versions", "machine", "tables"}
    copied = "ranscribed" in result["source"]
    assert copied or (result["source"] == "run" and figures)
    assert table.origin(result).count(result["commit"]) >= 1
    assert copied == ("ranscribed" in table.origin(result))


@pytest.mark.parametrize("name", DERIVED)
def test_a_derived_table_is_of_the_results_that_it_reads(name, tmp_path, monkeypatch):
    """A result that was measured again leaves no table of its old figures behind."""
    monkeypatch.setattr(_results, "_PRINTED", {})
    path = tmp_path / "now.json"
    monkeypatch.setattr(sys, "argv", [f"benchmarks/{name}.py", "--out", str(path)])
    importlib.import_module(name).main()
    now, kept = (
        json.loads(each.read_text(encoding="utf-8"))
        for each in (path, _results.RESULTS / f"{name}.json")
    )
    assert kept["tables"] == now["tables"]


def test_the_derived_tables_are_found():
    assert DERIVED == ["leaderboard", "prior_bars", "recovery"]


def test_every_benchmark_keeps_its_tables():
    scripts = [
        path
        for path in table.DOCUMENT.parent.glob("[!_]*.py")
        if path.name not in {"table.py", "picture.py"}  # which show what is kept
    ]
    assert len(scripts) > 15
    for path in scripts:
        text = path.read_text(encoding="utf-8")
        assert '"--out"' in text, path
        assert "keep_tables(args.out)" in text, path


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Return a result as a benchmark writes it, with one table."""
    monkeypatch.setattr(_results, "_PRINTED", {})
    arguments = ["/home/me/x.h5", "--k", "1 2", "--net", "a=/home/me/w"]
    monkeypatch.setattr(sys, "argv", ["benchmarks/a.py", *arguments])
    path = tmp_path / "results" / "a.json"
    _results.write_json(path, {"figures": [0.5]})
    _results.markdown_table(["a", "b"], [["1", "2"]], "both")
    _results.markdown_table(["a"], [["never kept"]])
    _results.keep_tables(path)
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_result_holds_figures_tables_and_origin(kept):
    assert kept["figures"] == [0.5]
    assert kept["tables"] == {"both": {"header": ["a", "b"], "rows": [["1", "2"]]}}
    assert kept["command"] == "python benchmarks/a.py x.h5 --k '1 2' --net a=w"
    assert kept["source"] == "run"
    assert kept.keys() >= SOURCES


def test_a_result_is_printed_again(kept, tmp_path, monkeypatch, capsys):
    path = tmp_path / "results" / "a.json"
    monkeypatch.setattr(sys, "argv", ["table.py", str(path)])
    table.main()
    printed = capsys.readouterr().out
    assert "`python benchmarks/a.py x.h5 --k '1 2' --net a=w`: " in printed
    assert "| a | b |\n|---|---|\n| 1 | 2 |\n" in printed


def test_tables_are_put_into_the_document(kept, tmp_path, monkeypatch):
    document = tmp_path / "RESULTS.md"
    document.write_text("Before\n\n<!-- a.json: both -->\nold\n<!-- end -->\n\nAfter\n")
    monkeypatch.setattr(table, "DOCUMENT", document)
    monkeypatch.setattr(table, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(sys, "argv", ["table.py", "--rewrite"])
    table.main()
    text = document.read_text()
    assert "old" not in text
    assert text.startswith("Before\n\n<!-- a.json: both -->\n`python benchmarks/a.py")
    assert text.endswith("| 1 | 2 |\n<!-- end -->\n\nAfter\n")


def test_nothing_is_kept_without_a_file():
    _results.keep_tables(None)
