"""Each command of the page of papers is one that its program would take.

And each setting beside it is one that its estimator would.
"""

import argparse
import re
import runpy
import shlex
import sys

import pytest

from privfeat import DPSGDClassifier
from privfeat.cli import main as privfeat
from privfeat.cli.shared import estimators
from privfeat.core.noise.keys import SharedKeys
from privfeat.core.sums.processes import current_team
from tests.audited import ROOT

PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")]
CELLS = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in ROWS]
COMMANDS = sorted({cell[1].strip("`") for cell in CELLS if cell[1].startswith("`")})


def fits_of(cells):
    """Return the fits of a row: of its command, and with what its other cells set.

    A setting beside the command of another program is one of ``privfeat train``.
    """
    _, *command = shlex.split(cells[1].strip("`"))
    fit = command if command[:1] in (["fit"], ["train"], ["sanity"]) else TRAIN
    found = [fit] if "--set" in fit else []
    for text in re.findall(r"`([^`]*--set [^`]*)`", " ".join(cells[2:])):
        added = shlex.split(text)
        names = {word.partition("=")[0] for word in added if "=" in word}
        found.append([*without(fit, names), *added])
    return found


def without(words, names):
    """Return a command without what it sets of these names."""
    left = iter(words)
    kept = []
    for word in left:
        given = [word, next(left)] if word == "--set" else [word]
        if given[-1].partition("=")[0] not in names:
            kept += given
    return kept


TRAIN = ["train", "--data", "images", "--epsilon", "8", "--out", "model"]
FITS = [fit for row in CELLS if row[1].startswith("`") for fit in fits_of(row)]


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
    assert parsed(program, words, monkeypatch)


@pytest.mark.parametrize("words", FITS, ids=" ".join)
def test_settings_are_accepted(words, monkeypatch):
    args = parsed("privfeat", words, monkeypatch)
    if words[0] == "sanity":
        basis = estimators.load_tested(args)
    else:
        basis = DPSGDClassifier() if words[0] == "train" else args.estimator
    clf = estimators.make_estimator(basis, estimators.parameters(args))
    clf.set_params(classes=[0, 1])
    if not isinstance(clf, DPSGDClassifier):
        assert clf.planned(8).releases
        return
    clf._check_parameters()
    keys = SharedKeys(0, current_team())
    assert clf._optimizer(10, "record", 100, keys, [(2, 2)])


def parsed(program, words, monkeypatch):
    """Return what the parser of a program makes of words, which do nothing more."""
    genuine = argparse.ArgumentParser.parse_args

    def parse(self, args=None, namespace=None):
        raise ParsedError(genuine(self, args, namespace))

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    with pytest.raises(ParsedError) as found:
        run(program, words, monkeypatch)
    return found.value.args[0]


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
