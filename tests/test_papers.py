"""Each command of the page of papers is one that its program would take."""

import argparse
import re
import runpy
import shlex
import sys

import pytest

from privfeat.cli import main as privfeat
from tests.audited import ROOT

PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")]
CELLS = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in ROWS]
COMMANDS = sorted({cell[1].strip("`") for cell in CELLS if cell[1].startswith("`")})


class ParsedError(Exception):
    """The words were taken: the script must not go on."""


def test_no_cell_is_empty():
    assert {len(cells) for cells in CELLS} == {5}
    assert all(cell for cells in CELLS for cell in cells)
    titles = re.findall(r"^## (.*) \d{4}: ", PAGE, re.M)
    names = ["Mehta", "Kurakin", "Sander", "Bu", "Van der Veen"]
    assert [title.removesuffix(" et al.") for title in titles] == names


@pytest.mark.parametrize("command", COMMANDS)
def test_command_parses(command, monkeypatch):
    program, *words = shlex.split(command)
    if program == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{words[0]}:", makefile, re.M)
        return
    genuine = argparse.ArgumentParser.parse_args

    def parse(self, args=None, namespace=None):
        raise ParsedError(genuine(self, args, namespace))

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    with pytest.raises(ParsedError):
        run(program, words, monkeypatch)


def run(program, words, monkeypatch):
    """Run a command up to where its words are read."""
    if program == "privfeat":
        privfeat(words)
    elif program == "privfeat-extract":
        pytest.importorskip("privfeat_extract.cli").main(words)
    else:
        assert program == "python"
        script = ROOT / words[0]
        folders = [str(ROOT / "benchmarks"), str(script.parent)]
        monkeypatch.setattr(sys, "path", [*folders, *sys.path])
        monkeypatch.setattr(sys, "argv", [str(script), *words[1:]])
        runpy.run_path(str(script), run_name="__main__")
