import json

import pytest

from privfeat import PrivacyLedger, persistence
from privfeat.core.ledger.store import BUDGETS
from tests.core.ledgers import make_statement

NUMBERS = ("--epsilon", 3, "--delta", 1e-5)


@pytest.fixture
def path(run, tmp_path):
    path = tmp_path / "team.ledger"
    status, out, _ = run("budget", "create", path, "--dataset", "tiny", *NUMBERS)
    assert status == 0
    assert "left    epsilon = 3, or rho = 0.258564" in out
    return path


@pytest.fixture
def fit(run, features, path, tmp_path):
    """Return a function that runs `privfeat fit` with the ledger."""

    def fit(epsilon, *more, out="model"):
        named = ("--ledger", path, "--dataset", "tiny", *more)
        command = ("fit", "--estimator", "DPLeastSquares", "--epsilon", epsilon)
        return run(*command, "--train", features, "--out", tmp_path / out, *named)

    return fit


def noise_lines(out):
    shown = [line.partition(", L2")[0].strip() for line in out.splitlines()]
    return [line for line in shown if ": noise multiplier " in line]


def left_in(out):
    (line,) = [line for line in out.splitlines() if line.startswith("  left")]
    return float(line.split()[3].rstrip(","))


def test_fit_charges_the_ledger(fit, run, path, tmp_path):
    assert fit(1)[0] == 0
    (charge,) = PrivacyLedger(path, dataset="tiny").history
    loaded = persistence.load(tmp_path / "model").privacy_
    assert charge.statement == loaded
    assert charge.statement.charge == loaded.charge is not None
    _, out, _ = run("budget", "show", path)
    assert "spent   epsilon = 1, rho = 0.0359258 in 1 fit\n" in out
    _, out, _ = run("budget", "history", path, "--dataset", "tiny")
    assert "DPLeastSquares  fitted  epsilon = 1, delta = 1e-05" in out
    # as in the statement, rounded down: more noise would promise more
    _, stated, _ = run("statement", tmp_path / "model")
    assert noise_lines(out) == noise_lines(stated) != []


def test_history_says_that_there_are_no_charges(run, path):
    whose = ("budget", "history", path, "--dataset", "tiny")
    assert run(*whose)[:2] == (0, "no charges yet\n")
    assert run(*whose, "--json")[:2] == (0, "[]\n")


def test_what_show_says_is_left_may_be_spent(fit, run, path):
    fit(1)
    left = left_in(run("budget", "show", path)[1])
    assert 2.7 < left < 2.8
    assert fit(left, out="another")[0] == 0
    assert left_in(run("budget", "show", path)[1]) < 0.01


def test_fit_that_overspends_fails_with_what_is_left(fit, path, tmp_path):
    status, _, err = fit(3.5)
    assert status == 3
    assert err.count("\n") == 1
    assert "One more fit may have epsilon = 3 " in err
    assert not (tmp_path / "model").exists()
    assert PrivacyLedger(path, dataset="tiny").history == []


@pytest.mark.parametrize("given", [("--ledger", "x"), ("--dataset", "tiny")])
def test_fit_wants_ledger_and_data_set_together(fails, features, tmp_path, given):
    command = ("fit", "--estimator", "DPFC", "--train", features, "--out", tmp_path)
    assert "--ledger and --dataset must be given together" in fails(*command, *given)


def test_fit_takes_a_ledger_by_its_option_only(fit):
    _, _, err = fit(1, "--set", "ledger=x")
    assert "--set ledger=... must be given as --ledger." in err


def test_create_again_changes_nothing(run, fails, path):
    PrivacyLedger(path, dataset="tiny").charge(
        make_statement(epsilon=1.0), estimator="DPFC"
    )
    command = ("budget", "create", path, "--dataset", "tiny")
    assert "in 1 fit" in run(*command, *NUMBERS)[1]
    assert "cannot be changed" in fails(*command, "--epsilon", 4, "--delta", 1e-5)


def test_create_takes_adjacency_and_unit(run, path):
    more = ("--adjacency", "replace_one", "--unit", "user")
    run("budget", "create", path, "--dataset", "people", *NUMBERS, *more)
    _, out, _ = run("budget", "show", path, "--dataset", "people")
    assert out.startswith("people: user, replace_one, delta = 1e-05, since ")


def test_show_shows_every_data_set(run, path):
    run("budget", "create", path, "--dataset", "other", *NUMBERS)
    _, out, _ = run("budget", "show", path)
    assert out.startswith("other: ")
    assert "\ntiny: " in out
    assert "other" not in run("budget", "show", path, "--dataset", "tiny")[1]


def test_show_shows_the_others_where_one_is_damaged(run, fails, path):
    other = PrivacyLedger(path, dataset="other", epsilon=1.0, delta=1e-5)
    with other._store.transaction(write=True) as rows:
        rows.update(BUDGETS, {"dataset": "other", "epsilon": 30.0})
    status, out, error = run("budget", "show", path)
    assert status == 1
    assert out.startswith("tiny: ")
    assert "other" not in out
    assert "'other'" in error
    status, out, _ = run("budget", "show", path, "--json")
    assert (status, len(json.loads(out))) == (1, 1)
    assert "'other'" in fails("budget", "show", path, "--dataset", "other")


def test_show_and_history_speak_to_programs(run, path):
    ledger = PrivacyLedger(path, dataset="tiny")
    ledger.charge(make_statement(epsilon=1.0), estimator="DPFC")
    (shown,) = json.loads(run("budget", "show", path, "--json")[1])
    assert shown["fits"] == 1
    assert shown["spent"]["epsilon"] == 1.0
    assert shown["budget"]["epsilon"] == 3.0
    assert shown["remaining"]["epsilon"] == ledger.remaining.epsilon
    command = ("budget", "history", path, "--dataset", "tiny", "--json")
    (charge,) = json.loads(run(*command)[1])
    assert charge["statement"]["epsilon"] == 1.0
    assert charge["fitted"] is None


def test_commands_make_no_ledger_by_mistake(fails, tmp_path):
    path = tmp_path / "none.ledger"
    assert "no such file" in fails("budget", "show", path)
    assert "no such file" in fails("budget", "history", path, "--dataset", "a")
    assert not path.exists()


def test_a_name_near_another_is_created_only_where_it_is_said(run, fails, path):
    near = ("budget", "create", path, "--dataset", "tiny2", *NUMBERS)
    assert "differ from 'tiny', which has a budget" in fails(*near)
    assert run(*near, "--new-dataset")[0] == 0
    assert run(*near)[0] == 0  # it is there now
    assert "tiny2: " in run("budget", "show", path)[1]


@pytest.mark.parametrize(
    "verb",
    [
        "fit --estimator DPLeastSquares --train FEATURES --out OUT",
        "budget show",
        "budget history",
    ],
)
def test_verbs_name_the_data_set_that_was_meant(fails, features, path, tmp_path, verb):
    given = {"FEATURES": features, "OUT": tmp_path / "model"}
    words = [given.get(word, word) for word in verb.split()]
    ledger = [path] if words[0] == "budget" else ["--ledger", path]
    told = fails(*words, *ledger, "--dataset", "Tiny ")
    assert "got 'Tiny '. It is near 'tiny': open that." in told
    assert PrivacyLedger(path, dataset="tiny").history == []


def test_history_says_who_where_it_was_said(fit, run, path):
    assert fit(1)[0] == 0
    assert fit(0.5, "--who", "Ann Lee", out="another")[0] == 0
    command = ("budget", "history", path, "--dataset", "tiny")
    first, second = (
        line for line in run(*command)[1].splitlines() if "  fitted" in line
    )
    assert "Ann" not in first
    assert "  Ann Lee  DPLeastSquares  " in second
    charges = json.loads(run(*command, "--json")[1])
    assert [charge["who"] for charge in charges] == [None, "Ann Lee"]


def test_who_is_for_a_ledger(fails, features, tmp_path):
    command = ("fit", "--estimator", "DPFC", "--train", features, "--out", tmp_path)
    assert "--who must be given with --ledger" in fails(*command, "--who", "Ann")


def test_create_refuses_a_wrong_budget(fails, tmp_path):
    command = ("budget", "create", tmp_path / "a", "--dataset", "a")
    for wrong in (("--epsilon", "inf"), ("--epsilon", "nan"), ("--epsilon", "-1")):
        assert "epsilon must be finite" in fails(*command, *wrong, "--delta", 1e-5)
    assert not (tmp_path / "a").exists()
