"""Exit statuses, and who speaks JSON, are those of the page about commands."""

import argparse
import gc
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from privfeat import PrivacyLedger
from privfeat.cli import main, run_command
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


def told_fields():
    """Return the fields that the page lists for each command."""
    table = (
        PAGE.read_text().partition("## What `--json` prints")[2].partition("\n## ")[0]
    )
    rows = re.findall(r"^\| `([a-z ]+)` \| [^|]* \| (.*) \|$", table, re.M)
    named = r"`([a-z_.]+)`"
    return {name: set(re.findall(named, fields)) for name, fields in rows}


FIELDS = told_fields()


def fields_of(found, told):
    """Return its fields, those within an object or a list if the page names one."""
    (one,) = found if isinstance(found, list) else [found]
    inner = {name: n[0] if isinstance(n, list) and n else n for name, n in one.items()}
    within = {name.partition(".")[0] for name in told if "." in name}
    return {name for name in one if name not in within} | {
        f"{name}.{part}" for name in within for part in inner[name]
    }


@pytest.mark.parametrize("name", sorted(FIELDS.keys() - {"recipe", "sanity"}))
def test_page_lists_the_fields_of_json(name, run, features, tmp_path):
    """Of `recipe` and `sanity`, which fit for long: test_recipe.py, test_sanity.py."""
    path, model = tmp_path / "a.ledger", tmp_path / "model"
    whose = ("--ledger", path, "--dataset", "a")
    PrivacyLedger(path, dataset="a", epsilon=30.0, delta=1e-5)
    fit = ("fit", "--estimator", "DPLeastSquares", "--epsilon", 20, "--out", model)
    assert run(*fit, "--train", features, *whose)[0] == 0
    settings = "--n 9999 --batch-size 99 --noise-multiplier 3 --steps 9 --delta 1e-6"
    words = {
        "budget show": [path],
        "budget history": [path, "--dataset", "a"],
        "budget plan": "--epsilon 3 --delta 1e-5 --fit epsilon=1".split(),
        "statement": [model],
        "evaluate": ["--model", model, "--test", f"{features}:test", "--epsilon", 1],
        "doctor": [],
        "plan": "--n 500 --d 5 --classes 3 --epsilon 1".split(),
        "tan": settings.split(),
    }
    status, out, err = run(*name.split(), *words[name], "--json")
    assert status == 0, err
    told = FIELDS[name] - {"selection"}  # of a search
    assert fields_of(json.loads(out), told) == told


def test_page_lists_the_fields_of_every_verb_that_speaks_json():
    assert FIELDS.keys() == {
        " ".join(name)
        for name, parser in PARSERS.items()
        if "--json" in parser._option_string_actions
    }


def test_page_lists_every_status():
    listed = re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.M)
    assert listed == "0 1 2 3 129 130 134 137 143".split()


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


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_statuses_above_128_are_of_signals(run, plant, name):
    """Whoever called the command gets its own answer to the signal back."""
    number = getattr(signal, name, None)
    if number is None:
        pytest.skip("Windows has no such signal")

    def end(path):
        os.kill(os.getpid(), number)
        time.sleep(60)

    plant("load of a statement", end)
    before = signal.signal(number, signal.SIG_DFL)
    try:
        status, _, err = run("statement", "m")
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert status == 128 + number
    assert err.startswith("privfeat: interrupted.")


@pytest.mark.slow
def test_a_signal_after_the_work_changes_nothing(tmp_path):
    """It ended the process with a traceback, or with -2 and without a line."""
    ends = tmp_path / "ends.py"
    ends.write_text(
        "import atexit, os, signal, sys\n"
        "from privfeat.cli import run_command\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['privfeat', '--completion', 'bash']\n"
        "run_command()\n"
    )
    done = subprocess.run([sys.executable, ends], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.fixture
def interruptible():
    """Answer SIGINT, which a shell ignores in what it starts in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_a_signal_in_a_callback_of_the_garbage_collector_is_not_lost(
    run, plant, number, status, interruptible
):
    def collect(phase, _):
        gc.callbacks.remove(collect)
        os.kill(os.getpid(), number)

    def end(path):
        gc.callbacks.append(collect)
        gc.collect()
        time.sleep(60)

    plant("load of a statement", end)
    found, _, err = run("statement", "m")
    assert found == status
    assert err.startswith("privfeat: interrupted.")


def test_a_signal_that_comes_while_one_is_sent_again_is_not_lost(
    run, plant, monkeypatch
):
    """The second was raised within the hook, which Python drops too."""

    class Early(threading.Thread):
        def start(self):
            if not sent:
                sent.append(signal.SIGTERM)
                os.kill(os.getpid(), signal.SIGTERM)
            super().start()

    def collect(phase, _):
        gc.callbacks.remove(collect)
        os.kill(os.getpid(), signal.SIGTERM)

    def end(path):
        gc.callbacks.append(collect)
        gc.collect()
        time.sleep(5)

    sent = []
    monkeypatch.setattr(threading, "Thread", Early)
    plant("load of a statement", end)
    assert run("statement", "m")[0] == 143
    assert sent == [signal.SIGTERM]


def test_an_interrupted_command_waits_for_no_threads(plant, monkeypatch, capsys):
    def interrupt(path):
        raise KeyboardInterrupt

    ended = []
    plant("load of a statement", interrupt)
    monkeypatch.setattr(sys, "argv", ["privfeat", "statement", "m"])
    monkeypatch.setattr(os, "_exit", ended.append)
    with pytest.raises(SystemExit):
        run_command()
    assert ended == [130]
    assert capsys.readouterr().err.startswith("privfeat: interrupted.")


def test_status_130_is_of_an_interrupt(run, plant):
    def interrupt(path):
        raise KeyboardInterrupt

    plant("load of a statement", interrupt)
    assert run("statement", "m")[0] == 130


def test_an_interrupt_before_the_command_is_known_has_its_status(monkeypatch, capsys):
    def interrupt(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", interrupt)
    assert main(["statement", "m"]) == 130
    assert capsys.readouterr().err == "privfeat: interrupted.\n"
