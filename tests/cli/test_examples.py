"""Each verb's help ends with an example, and examples work in their order."""

import argparse
import shlex

import pytest

from privfeat.cli import build_parser
from privfeat.cli.shared.examples import EXAMPLES
from privfeat.data import write_features
from tests.cli.patients import COLUMNS, rows_of, write
from tests.cli.tiny import CLASS_NAMES, make_split

# They take long, or read your images: the tests of these verbs run them.
ELSEWHERE = {
    *("privfeat quickstart", "privfeat sanity", "privfeat audit", "privfeat workflow"),
    *("privfeat train", "privfeat recipe"),
}


def verbs(parser):
    """Return the progs of a parser's verbs, and of theirs."""
    found = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                found += [verb.prog, *verbs(verb)]
    return found


def test_each_verb_has_an_example():
    assert set(verbs(build_parser())) == set(EXAMPLES)


@pytest.mark.parametrize("prog", EXAMPLES)
def test_help_ends_with_an_example_that_can_be_parsed(prog, run):
    status, out, _ = run(*prog.split()[1:], "--help")
    assert status == 0
    example = out.splitlines()[-1].strip()
    assert example == EXAMPLES[prog]
    words = shlex.split(example.partition(" > ")[0])[1:]
    build_parser().parse_args(words)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with what `make quickstart` and a hospital leave there."""
    splits = {"train": make_split(240, 0), "test": make_split(60, 1)}
    (tmp_path / "quickstart").mkdir()
    write_features(tmp_path / "quickstart/digits.h5", splits, class_names=CLASS_NAMES)
    write(tmp_path / "patients.csv", rows_of(30, 0))
    (tmp_path / "columns.toml").write_text(COLUMNS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_examples_run_in_their_order(folder, run):
    # `privfeat budget` shows the example of one of its verbs
    for prog in EXAMPLES:
        if prog in ELSEWHERE or prog == "privfeat budget":
            continue
        words = shlex.split(EXAMPLES[prog].partition(" > ")[0])[1:]
        status, _, err = run(*words)
        assert status == 0, (prog, err)
