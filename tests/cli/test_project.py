"""``privfeat budget plan``: from a file, from options, beside a ledger."""

import json

import pytest

from privfeat import PrivacyLedger
from tests.core.ledgers import make_statement

NUMBERS = ("--epsilon", 3, "--delta", 1e-5)
PROJECT = """
epsilon = 3.0
delta = 1e-5
[[fit]]
name = "grid"
epsilon = 0.3
count = 7
[[fit]]
name = "network"
noise_multiplier = 4.0
sampling_prob = 0.1
steps = 2
accounting = "rdp"
delta = 1e-6
"""


@pytest.fixture
def project(tmp_path):
    path = tmp_path / "project.toml"
    path.write_text(PROJECT)
    return path


def test_plan_reads_a_file_and_options(run, project):
    status, out, _ = run("budget", "plan", project, "--fit", "name=end,rho=0.01")
    assert status == 0
    assert [line.split()[-1] for line in out.splitlines()[3:6]] == [
        "grid",
        "network",
        "end",
    ]
    assert out.startswith("budget  epsilon = 3 at delta = 1e-05, record, add_remove\n")


def test_plan_of_options_is_that_of_the_guide(run):
    fits = ("--fit", "name=grid,epsilon=0.3,count=7", "--fit", "epsilon=1.5")
    _, out, _ = run("budget", "plan", *NUMBERS, *fits, "--json")
    found = json.loads(out)
    assert found["total"]["epsilon"] == pytest.approx(1.787, abs=1e-3)
    assert found["remaining"]["epsilon"] == pytest.approx(2.255, abs=1e-3)
    assert found["fits_budget"] is True
    assert [fit["count"] for fit in found["fits"]] == [7, 1]


def test_plan_that_is_too_much_is_shown_and_fails(run):
    status, out, err = run("budget", "plan", *NUMBERS, "--fit", "epsilon=2,count=3")
    assert status == 1
    assert "(TOO MUCH)" in out
    assert "these fits must cost at most epsilon = 3.0" in err


def test_plan_goes_on_from_a_ledger(run, tmp_path):
    path = tmp_path / "a.ledger"
    ledger = PrivacyLedger(path, dataset="a", epsilon=3.0, delta=1e-5)
    ledger.charge(make_statement(epsilon=1.0), estimator="DPFC")
    whose = ("--ledger", path, "--dataset", "a")
    _, out, _ = run("budget", "plan", *whose, "--fit", "epsilon=1")
    assert "spent   epsilon = 1\n" in out
    assert len(ledger.history) == 1


def test_plan_takes_the_delta_of_the_budget_of_a_ledger(run, fails, tmp_path):
    path = tmp_path / "a.ledger"
    PrivacyLedger(path, dataset="a", epsilon=3.0, delta=1e-6)
    whose = ("--ledger", path, "--dataset", "a")
    _, beside, _ = run("budget", "plan", *whose, "--fit", "epsilon=1")
    alone = ("--epsilon", 3, "--delta", 1e-6)
    assert run("budget", "plan", *alone, "--fit", "epsilon=1")[1] == beside
    assert "      1          1          1  fit" in beside
    assert "run them with --delta 1e-06" in beside
    twice = fails("budget", "plan", *whose, "--delta", 1e-6, "--fit", "epsilon=1")
    assert "--delta must not be given together with --ledger" in twice


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (NUMBERS, "fits must be given"),
        ((*NUMBERS, "--fit", "epsilon"), "--fit must be NAME=VALUE"),
        ((*NUMBERS, "--fit", "epsilon=1,epsilon=2"), "once each"),
        ((*NUMBERS, "--fit", "epsilon=x"), "a number for epsilon"),
        ((*NUMBERS, "--fit", "count=x"), "a number for count"),
        ((*NUMBERS, "--fit", "count=1.5"), "count must be"),
        ((*NUMBERS, "--fit", "size=1"), "got 'size'"),
        (("--fit", "epsilon=1"), "must be given, or a ledger"),
    ],
)
def test_plan_refuses_what_is_no_plan(fails, words, message):
    assert message in fails("budget", "plan", *words)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epsilon = ", "must be TOML"),
        ("fit = 1", "in [[fit]] tables"),
        ("size = 1\n[[fit]]\nepsilon=1", "got 'size'"),
        ('epsilon="a"\ndelta=1e-5\n[[fit]]\nepsilon=1', "epsilon must be"),
    ],
)
def test_plan_refuses_a_file_that_is_none(fails, tmp_path, text, message):
    path = tmp_path / "project.toml"
    path.write_text(text)
    assert message in fails("budget", "plan", path)
