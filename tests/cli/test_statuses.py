"""Exit statuses, and who speaks JSON, are those of the page about commands."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from privfeat import PrivacyLedger
from tests.cli.test_examples import PARSERS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"


def test_page_lists_the_verbs_that_speak_json():
    (told,) = re.findall(r"With `--json` these .*?:(.*?)\.\s", PAGE.read_text(), re.S)
    speaking = {
        " ".join(name)
        for name, parser in PARSERS.items()
        if "--json" in parser._option_string_actions
    }
    assert set(re.findall(r"`([\w\s]+?)`", " ".join(told.split()))) == speaking


def test_page_lists_every_status():
    assert (
        re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.M) == "0 1 2 3 130 143".split()
    )


def test_status_0_is_of_what_was_done(run, model):
    status, out, err = run("statement", model, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["epsilon"] == 20.0


@pytest.mark.parametrize(
    "words",
    [
        "statement nowhere",
        "budget show nowhere",
        "budget plan --epsilon 1 --delta 1e-5 --fit epsilon=2",
    ],
)
def test_status_1_has_an_error_in_the_last_line(run, words):
    status, _, err = run(*words.split())
    assert status == 1
    assert err.splitlines()[-1].startswith("privfeat: error: ")


@pytest.mark.parametrize(
    "words", ["nonsense", "budget", "statement --nonsense", "fit --epsilon x"]
)
def test_status_2_is_of_a_wrong_command_line(run, words):
    status, out, err = run(*words.split())
    assert (status, out) == (2, "")
    assert err.startswith("usage: privfeat")


def test_status_3_is_of_a_budget_that_has_too_little_left(run, features, tmp_path):
    path = tmp_path / "a.ledger"
    PrivacyLedger(path, dataset="a", epsilon=0.5, delta=1e-5)
    whose = ("--ledger", path, "--dataset", "a", "--out", tmp_path / "model")
    status, _, err = run("fit", "--estimator", "DPFC", "--train", features, *whose)
    assert status == 3
    assert err.splitlines()[-1].endswith("Nothing was charged.")


def test_status_143_is_of_sigterm(run, plant):
    """Whoever called the command gets its own answer to the signal back."""

    def end(path):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

    plant("load of a statement", end)
    status, _, err = run("statement", "m")
    assert status == 143
    assert err.startswith("privfeat: interrupted.")
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_status_130_is_of_an_interrupt(run, plant):
    def interrupt(path):
        raise KeyboardInterrupt

    plant("load of a statement", interrupt)
    assert run("statement", "m")[0] == 130
