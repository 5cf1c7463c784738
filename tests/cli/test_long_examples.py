"""The examples of the verbs that take long, run in a folder with what they name.

Audit, sanity, workflow and quickstart run as they are printed. Train, recipe and tan
train networks on tens of thousands of images: ``SMALLER`` says what stands in place of
which words there. The images are 24, dark and bright.
"""

import shutil
from pathlib import Path

import pytest

from privfeat import PrivacyLedger, persistence
from privfeat.data import write_features
from tests.cli.test_examples import LONG, examples_of
from tests.cli.tiny import CLASS_NAMES, make_split

AS_PRINTED = ("audit", "sanity", "workflow", "quickstart")
# All else stays: files, budget, ledger, what is tried.
SMALLER = {
    "train": {"wrn_16_4": "mlp"},
    "recipe": {"wrn_16_4": "mlp", "50000": "24", "30": "1", "4096": "12"},
    "tan": {"wrn_16_4": "mlp", "50000": "1000", "4096": "128", "2500": "8"},
}
# What a command needs, and what it leaves in the folder.
NEEDED = {"audit": "jax_privacy", "workflow": "jax_privacy", "quickstart": "matplotlib"}
NEEDED |= dict.fromkeys(SMALLER, "flax")
LEFT = {
    "audit": "audit.json",
    "workflow": "results/report.html",
    "quickstart": "results/results.json",
    "train": "model/model.json",
    "recipe": "results/model/model.json",
    "tan": "search.json",
}
CHARGED = ("workflow", "train", "recipe")


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """Work in a new folder, with the ledger that the examples name."""
    monkeypatch.chdir(tmp_path)
    return PrivacyLedger("private.ledger", dataset="photos", epsilon=9.0, delta=1e-4)


def test_every_long_example_is_here():
    assert {*AS_PRINTED, *SMALLER} == LONG


def check(run, ledger, name, words):
    """Run a command, and look for what it leaves."""
    status, _, err = run(*words)
    assert status == 0, (words, err)
    assert name not in LEFT or Path(LEFT[name]).exists()
    assert len(ledger.history) == (name in CHARGED)


@pytest.mark.slow
@pytest.mark.parametrize("name", AS_PRINTED)
def test_example_runs_as_it_is_printed(run, ledger, name):
    pytest.importorskip(NEEDED.get(name, "jax"))
    pytest.importorskip("jinja2")
    splits = {"train": make_split(5000, 0), "test": make_split(60, 1)}
    for file in ("private.h5", "public.h5", "digits.h5"):
        write_features(file, splits, class_names=CLASS_NAMES)
    (words,) = examples_of((name,))
    check(run, ledger, name, words)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALLER)
def test_example_runs_with_smaller_numbers(run, folder, ledger, name):
    pytest.importorskip(NEEDED[name])
    for data in ("IMAGES", "OTHER-IMAGES"):
        for split in ("train", "test"):
            shutil.copytree(folder / split, Path(data) / split)
    (words,) = examples_of((name,))
    assert set(SMALLER[name]) <= set(words)
    words = [SMALLER[name].get(word, word) for word in words]
    check(run, ledger, name, words)
    if name in CHARGED:
        (model,) = Path.cwd().rglob("model.json")
        spent = persistence.load_statement(model.parent).epsilon
        assert spent <= float(words[words.index("--epsilon") + 1])
