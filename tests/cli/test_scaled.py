"""Private scaling from the command line: one budget, one model, one report."""

import numpy as np
import pytest

from privfeat import load
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
    assert run("report", scaled, "--out", report)[0] == 0
    text = report.read_text()
    assert "scale.moments" in text
    assert "PrivatePipeline(" in text


def test_scaled_fit_prints_an_accuracy(run, patients, tmp_path):
    words = ("--test", patients / "test.csv", "--out", tmp_path / "model")
    status, out, _ = run(*fit(patients, *SCALED, *words))
    assert status == 0
    assert float(out.split("test accuracy ")[1].split()[0]) > 0.8


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
