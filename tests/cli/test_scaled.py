"""Private scaling from the command line: one budget, one model, one report."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from privfeat import (
    DPLeastSquares,
    PrivacyLedger,
    PrivatePipeline,
    PublicColumns,
    load,
    save,
)
from privfeat.cli.shared.tables import Declared
from tests.cli.patients import fit

SCALED = ("--scale", "private")


@pytest.fixture(scope="module")
def scaled(patients, tmp_path_factory):
    """Return the folder of a model whose columns were scaled privately."""
    from privfeat.cli import main

    out = tmp_path_factory.mktemp("scaled") / "model"
    words = fit(patients, *SCALED, "--out", out, "--quiet")
    assert main([str(word) for word in words]) == 0
    return out


def test_scaled_model_has_one_statement_of_the_whole_budget(scaled):
    model = load(scaled)
    assert [name for name, _ in model.steps_] == ["scale", "model"]
    assert model.privacy_.epsilon == 20.0
    names = [release.name for release in model.privacy_.releases]
    assert names[0] == "scale.moments"
    assert "model.class_sums" in names
    assert "the declaration of the columns" in " ".join(model.privacy_.public)


def test_scaled_model_predicts_and_is_reported(run, patients, scaled, tmp_path):
    out = tmp_path / "p.csv"
    words = ("--model", scaled, "--features", patients / "test.csv", "--out", out)
    assert run("predict", *words)[0] == 0
    assert len(out.read_text().splitlines()) > 10
    report = tmp_path / "report.html"
    card = ("--card", tmp_path / "card.md")
    assert run("report", scaled, "--out", report, *card)[0] == 0
    _, _, code = (tmp_path / "card.md").read_text().partition("\nfrom ")
    lines = f"from {code}".splitlines()
    exec("\n".join(line for line in lines if line.startswith("from ")), {})
    text = report.read_text()
    assert "scale: sums of the features" in text
    assert "PrivatePipeline(" in text


def test_scaled_fit_prints_an_accuracy(run, patients, tmp_path):
    words = (
        "--test",
        patients / "test.csv",
        "--test-is-public",
        "--out",
        tmp_path / "model",
    )
    status, out, _ = run(*fit(patients, *SCALED, *words))
    assert status == 0
    assert float(out.split("test accuracy ")[1].split()[0]) > 0.8


def test_scaled_fit_says_its_cost_before_it_is_charged(run, patients, tmp_path):
    path = tmp_path / "private.ledger"
    PrivacyLedger(path, dataset="clinic", epsilon=30.0, delta=1e-5)
    ledger = ("--ledger", path, "--dataset", "clinic")
    status, _, err = run(*fit(patients, *SCALED, *ledger, "--out", tmp_path / "m"))
    assert status == 0
    (told,) = [line for line in err.splitlines() if "charged to" in line]
    assert told.startswith("PrivatePipeline: epsilon = 20 at delta = ")
    assert "for 1 x scale.moments + " in told
    assert "charged to 'clinic', which then has epsilon = " in told


def test_refused_fit_says_that_nothing_was_charged(fails, patients, tmp_path, capsys):
    path = tmp_path / "private.ledger"
    PrivacyLedger(path, dataset="clinic", epsilon=0.1, delta=1e-5)
    capsys.readouterr()
    ledger = ("--ledger", path, "--dataset", "clinic", "--out", tmp_path / "m")
    for more in (SCALED, (), ("--max-group-size", 3)):
        error = fails(*fit(patients, *more, *ledger))
        assert error.count("Nothing was charged.") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "budget_split={}"), "budget_split must not be given"),
        (("--set", "nothing=1"), "has no parameter 'nothing'"),
    ],
)
def test_what_one_budget_cannot_hold_is_refused(
    run, patients, tmp_path, words, message
):
    out = ("--out", tmp_path / "model")
    status, _, err = run(*fit(patients, *SCALED, *words, *out))
    assert status != 0
    assert message in err


def test_bounds_of_features_follow_from_the_declaration():
    declared = Declared(
        {
            "age": {"kind": "integer", "bounds": [0, 9], "missing": "indicator"},
            "raw": {"kind": "numeric", "bounds": [2, 5], "treatment": "raw"},
            "none": {"kind": "ignored"},
            "clinic": {"kind": "category", "categories": ["a", "b"]},
        },
        None,
    )
    low, high = np.array(declared.feature_bounds)
    assert low.tolist() == [-1, 0, 2, 0, 0]
    assert high.tolist() == [1, 1, 5, 1, 1]


@pytest.mark.parametrize("private", [False, True])
def test_recipe_of_a_pipeline_that_reads_a_table_makes_it_again(run, tmp_path, private):
    """Declared columns are its first step, and stand in the code once."""
    declared = {n: {"kind": "numeric", "bounds": [0, 9]} for n in ("age", "dose")}
    clf = DPLeastSquares(classes=[0, 1], **({} if private else {"epsilon": 3.0}))
    steps = [("columns", PublicColumns(declared)), ("clf", clf)]
    if not private:
        steps.insert(1, ("norm", Normalizer()))
    made = PrivatePipeline(steps, epsilon=3.0) if private else Pipeline(steps)
    table = pd.DataFrame({"age": np.arange(9.0), "dose": np.arange(9.0)[::-1]})
    y = np.arange(9) % 2
    save(made.fit(table, y), tmp_path / "model")
    card = ("--card", tmp_path / "card.md")
    assert (
        run("report", tmp_path / "model", "--out", tmp_path / "r.html", *card)[0] == 0
    )
    _, _, code = (tmp_path / "card.md").read_text().partition("\nfrom ")
    given = {"table": table, "y": y}
    exec("from " + code.partition("\n```")[0], given)
    assert code.count("PublicColumns(") == 1
    assert repr(given["clf"]) == repr(made)
