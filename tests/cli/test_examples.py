"""Every verb ends its help with an example, and the examples are commands that run."""

import argparse
import re
import shlex
import shutil

import pytest

from privfeat.cli import build_parser
from tests.cli.test_project import PROJECT
from tests.export.conftest import write_card


def parsers_of(parser, *name):
    """Return every parser of a verb, or of an action of a verb, by its name."""
    found = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, one in action.choices.items():
                found[(*name, verb)] = one
                found |= parsers_of(one, *name, verb)
    return found


PARSERS = parsers_of(build_parser())


def examples_of(name):
    """Return the commands at the end of the help of a verb, as words."""
    return examples_in(PARSERS[name])


def examples_in(parser):
    """Return the commands at the end of a help, as words."""
    shown = parser.format_help().partition("\nfor example:\n")[2]
    commands = shown.replace("\\\n", " ").splitlines()
    return [shlex.split(command)[1:] for command in commands]


@pytest.mark.parametrize("name", PARSERS, ids=" ".join)
def test_help_ends_with_an_example_that_parses(name):
    known = pytest.importorskip("privfeat.networks", exc_type=ImportError).NETWORKS
    commands = examples_of(name)
    assert commands
    for words in commands:
        assert tuple(words[: len(name)]) == name
        words = words[: words.index(">")] if ">" in words else words
        args = build_parser().parse_args(words)
        assert args.verb == name[0]
        if name[0] in ("train", "recipe", "workflow") and "model" in args:
            assert args.model in {None, *known}


def test_help_of_all_verbs_ends_with_an_example_that_runs(run):
    (words,) = examples_in(build_parser())
    status, _, err = run(*words)
    assert status == 0, err


@pytest.mark.parametrize("name", PARSERS, ids=" ".join)
def test_help_fits_a_terminal_and_names_its_command(name):
    text = PARSERS[name].format_help()
    prose = text.partition("\n\n")[2].partition("\noptions:")[0]
    assert max(map(len, prose.splitlines())) <= 90
    assert text.startswith(f"usage: privfeat {' '.join(name)} ")


# tests/cli/test_long_examples.py runs these.
LONG = {"train", "recipe", "workflow", "audit", "sanity", "tan", "quickstart"}


def test_examples_run(run, patients, features, model, tmp_path, monkeypatch):
    """In the order of a first day."""
    for package in ("onnx", "huggingface_hub"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    shutil.copy(patients / "columns.toml", "columns.toml")
    shutil.copy(patients / "train.csv", "patients.csv")
    shutil.copytree(model, "model")
    shutil.copytree(model, "results/model")
    write_card(tmp_path / "card.md", tmp_path / "results" / "model")
    (tmp_path / "project.toml").write_text(PROJECT)
    for name in ("new.h5", "private.h5"):
        shutil.copy(features, name)
    order = [("budget", action) for action in ("create", "show", "plan", "serve")]
    order += [("budget",), ("budget", "history"), ("doctor",), ("plan",)]
    order += [("statement",), ("predict",), ("report",), ("evaluate",), ("columns",)]
    order += [("fit",), ("export",)]
    assert {name[0] for name in PARSERS} == LONG | {name[0] for name in order}
    numbers = "--epsilon 3 --delta 1e-6".split()
    make = ("budget", "create", "private.ledger", "--dataset", "test-photos")
    assert run(*make, *numbers)[0] == 0
    for name in order:
        for words in examples_of(name):
            words = words[: words.index(">")] if ">" in words else words
            words = ["fresh" if w == "model" and name == ("fit",) else w for w in words]
            words = [re.sub("^diagnosis$", "outcome", word) for word in words]
            status, _, err = run(*words)
            assert status == 0, (words, err)
