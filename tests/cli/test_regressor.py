"""Commands on a table whose target is a number, from the plan to the report."""

import csv
import re

import numpy as np
import pytest

from privfeat import DPLeastSquaresRegressor, load, persistence
from privfeat.cli import main
from privfeat.data import write_features
from tests.cli.patients import write
from tests.cli.test_what_leaves import unlisted
from tests.cli.tiny import make_split

COLUMNS = """
[age]
kind = "integer"
bounds = [20, 80]
[dose]
kind = "numeric"
bounds = [0, 10]
[stay]
kind = "numeric"
bounds = [0, 40]
unit = "days"
"""
HEADER = ["age", "dose", "stay"]
ESTIMATOR = ("--estimator", "DPLeastSquaresRegressor")
SMALL = ("--n-samples", 60, "--n-features", 20)


def rows_of(n_rows, seed):
    """Return rows of patients who stay longer if they are old."""
    draw = np.random.default_rng(seed)
    for age, dose in zip(
        draw.integers(20, 81, n_rows), draw.uniform(0, 10, n_rows), strict=True
    ):
        yield [age, f"{dose:.2f}", f"{(age - 20) / 2 + dose / 2:.2f}"]


def fit(folder, *more):
    """Return the words of a fit with a budget of 20."""
    return (
        *("fit", *ESTIMATOR, "--epsilon", 20, "--train", folder / "train.csv"),
        *("--columns", folder / "columns.toml", "--target", "stay", *more),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with tables, their declaration, a model and one with scaling."""
    folder = tmp_path_factory.mktemp("stays")
    (folder / "columns.toml").write_text(COLUMNS)
    write(folder / "train.csv", rows_of(2000, 0), HEADER)
    write(folder / "test.csv", rows_of(300, 1), HEADER)
    for name, scale in (("model", "public"), ("scaled", "private")):
        words = ("--scale", scale, "--quiet", "--out", folder / name)
        assert main([str(word) for word in fit(folder, *words)]) == 0
    return folder


def test_fit_of_a_regressor_prints_r_squared(run, folder, tmp_path):
    words = (
        "--test",
        folder / "test.csv",
        "--test-is-public",
        "--out",
        tmp_path / "model",
    )
    status, out, _ = run(*fit(folder, *words))
    assert status == 0
    assert float(out.split("test R squared ")[1].split()[0]) > 0.9
    assert "the bounds of the target (0 to 40)" in out


@pytest.mark.parametrize("name", ["model", "scaled"])
def test_predict_of_a_regressor_reads_a_raw_table(name, run, folder, tmp_path):
    out = tmp_path / "p.csv"
    words = ("--model", folder / name, "--features", folder / "test.csv")
    assert run("predict", *words, "--out", out)[0] == 0
    header, *cells = csv.reader(out.read_text().splitlines())
    assert header == ["row", "prediction"]
    truth = [float(row[2]) for row in rows_of(300, 1)]
    assert np.corrcoef([float(cell) for _, cell in cells], truth)[0, 1] > 0.9


@pytest.mark.parametrize("name", ["model", "scaled"])
def test_evaluate_of_a_regressor_takes_the_bounds_of_its_table(name, run, folder):
    words = ("--model", folder / name, "--test", folder / "test.csv", "--epsilon", 8)
    status, out, err = run("evaluate", *words, "--overwrite")
    assert status == 0, err
    for figure in ("r2", "mean_absolute_error"):
        assert figure in out
    found = persistence.load_statement(folder / name)
    assert found.epsilon == 20.0


def test_evaluate_of_a_regressor_takes_its_own_bounds(run, tmp_path):
    """Those of ``target_bounds``, where no table declares them."""
    X, y = make_split(240, 0)[:2]
    regressor = DPLeastSquaresRegressor(epsilon=8, target_bounds=(0, 3)).fit(X, y)
    persistence.save(regressor, tmp_path / "model")
    write_features(tmp_path / "rows.h5", {"test": (X, y)})
    words = ("--model", tmp_path / "model", "--test", tmp_path / "rows.h5")
    status, out, err = run("evaluate", *words)
    assert status == 0, err
    assert "r2" in out


def test_report_of_a_regressor_shows_exact_errors_of_public_rows(run, folder, tmp_path):
    pytest.importorskip("jinja2")
    page, card = tmp_path / "r.html", tmp_path / "c.md"
    words = ("--test", folder / "test.csv", "--test-is-public", "--out", page)
    assert run("report", folder / "model", *words, "--card", card)[0] == 0
    shown = page.read_text()
    assert "Errors on public test records" in shown
    tables = re.findall(r'<table role="table" aria-label="(.*?)"', shown)
    assert "Errors" in tables
    assert not unlisted("report", tables)
    assert not unlisted("card", re.findall(r"^## (.*)$", card.read_text(), re.M))
    assert "stay (the target)" in shown
    assert '"R squared": 0.9' in card.read_text()
    assert 'pipeline_tag: "tabular-regression"' in card.read_text()


def test_plan_of_a_regressor_prints_its_noise(run, fails, folder):
    declared = ("--columns", folder / "columns.toml", "--target", "stay")
    sizes = ("plan", "--n", 2000, "--epsilon", 20)
    status, out, _ = run(*sizes, *declared)
    assert status == 0
    params = load(folder / "model").get_params() | {"delta": 1e-5}
    moments = DPLeastSquaresRegressor(**params).planned(2).releases[0]
    assert f"1 x moments       stddev {moments.noise_stddev:10.4g}" in out
    assert "use DPLeastSquaresRegressor" in out
    assert "--public must not" in fails(*sizes, *declared, "--public", "x.csv")


def test_fit_of_a_feature_file_takes_its_numbers_as_targets(run, fails, tmp_path):
    X, y = make_split(240, 0)[:2]
    write_features(tmp_path / "rows.h5", {"train": (X, y)})
    words = ("fit", *ESTIMATOR, "--train", tmp_path / "rows.h5", "--quiet")
    words += ("--set", "target_bounds=(0, 3)", "--out", tmp_path / "model")
    status, _, err = run(*words)
    assert status == 0, err
    assert load(tmp_path / "model").target_bounds == (0, 3)
    named = tmp_path / "named.h5"
    write_features(named, {"train": (X, y)}, class_names=["a", "b", "c", "d"])
    message = fails("fit", *ESTIMATOR, "--train", named, "--out", tmp_path / "other")
    assert "must hold one number a row" in message


def test_fit_refuses_a_target_of_the_other_kind(fails, folder, tmp_path):
    given = ("--train", folder / "train.csv", "--columns", folder / "columns.toml")
    words = (*given, "--target", "stay", "--out", tmp_path / "m")
    message = fails("fit", "--estimator", "DPFC", *words)
    assert "Numbers are for DPLeastSquaresRegressor" in message
    message = fails("fit", *ESTIMATOR, *words, "--n-classes", 3)
    assert "--n-classes must not be given with a regressor" in message


def test_audit_of_a_regressor_finds_no_fault(run, tmp_path):
    pytest.importorskip("jax_privacy")
    status, out, err = run("audit", *ESTIMATOR, *SMALL)
    assert (status, err) == (0, "")
    assert "60 x 20, targets" in out
    assert out.count("no fault found") == 3


@pytest.mark.parametrize("name", ["model", "scaled"])
def test_audit_takes_a_model_of_a_table(name, run, folder):
    pytest.importorskip("jax_privacy")
    status, out, err = run("audit", "--model", folder / name, "--n-samples", 200)
    assert (status, err) == (0, "")
    assert out.count("no fault found") == 3
    assert ("scale.moments" in out or "scale." in out) == (name == "scaled")


def test_audit_of_a_regressor_refuses_classes(fails, features):
    assert "must not be given for a regressor" in fails(
        "audit", *ESTIMATOR, "--n-classes", 3
    )
    assert "must hold numbers to predict" in fails(
        "audit", *ESTIMATOR, "--public", features
    )


@pytest.mark.slow
def test_sanity_of_a_regressor_passes(run):
    words = ("--epsilon", 1, "--n-fits", 10, "--n-users", 100)
    status, out, err = run("sanity", *ESTIMATOR, *words)
    assert (status, err) == (0, "")
    assert "random labels: pass" in out
    assert "pattern of one user: pass" in out


def test_workflow_refuses_a_regressor_without_a_table(fails, features, tmp_path):
    pytest.importorskip("jax_privacy")
    pytest.importorskip("jinja2")
    words = ("workflow", tmp_path / "w", "--train", features, "--n", 240, *ESTIMATOR)
    assert "needs a table with --columns" in fails(*words)
