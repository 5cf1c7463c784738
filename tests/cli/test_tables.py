"""Commands on tables, from the declaration to the report."""

import csv
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from privfeat import DPFC, PrivacyLedger, PublicColumns, load, persistence
from privfeat.cli.shared.tables import declared_of
from privfeat.metrics.files import load_evaluation
from privfeat.preprocessing import read_columns
from tests.cli.patients import COLUMNS, SECRET, fit, rows_of, write


@pytest.fixture
def folder(patients):
    """Return the folder of a table, its declaration and a model."""
    return patients


def test_fit_on_a_table_prints_its_accuracy_and_statement(run, folder, tmp_path):
    test = ("--test", folder / "test.csv", "--test-is-public")
    words = (*test, "--out", tmp_path / "model")
    status, out, err = run(*fit(folder, *words))
    assert status == 0
    assert float(out.split("test accuracy ")[1].split()[0]) > 0.9
    assert "the set of 3 classes (given)" in out
    assert "the number of features (5)" in out
    assert "class unknown" not in err
    assert "columns.toml declares to be public: none of it may" in out
    saved = persistence.load_statement(tmp_path / "model")
    assert "the declaration of the columns" in " ".join(saved.public)
    assert "the declaration of the columns" in " ".join(out.split())


def test_model_of_a_table_predicts_from_a_raw_table(run, folder, tmp_path):
    """Columns may stand in any order, and those that it does not need may be absent."""
    raw, out = tmp_path / "raw.csv", tmp_path / "p.csv"
    rows = list(rows_of(40, 2))
    few = [[row[3], row[1], row[2], SECRET] for row in rows]
    write(raw, few, ["clinic", "age", "smoker", "other"])
    words = ("--model", folder / "model", "--features", raw, "--out", out)
    assert run("predict", *words)[0] == 0
    header, *predicted = csv.reader(out.read_text().splitlines())
    assert header == ["row", "class", "name"]
    names = [name for *_, name in predicted]
    assert (
        np.mean([name == row[4] for name, row in zip(names, rows, strict=True)]) > 0.9
    )
    table = persistence.load_table(folder / "model")
    assert table["target"] == "outcome"
    columns = PublicColumns(
        {k: v for k, v in table["columns"].items() if k != "outcome"}
    )
    X = columns.fit_transform([row[:4] for row in rows])
    expected = load(folder / "model").predict(X)
    assert [int(number) for _, number, _ in predicted] == expected.tolist()


def test_predict_is_the_same_for_a_row_in_every_table(run, folder, tmp_path):
    """Rows with other values beside it change nothing."""
    found = []
    for beside in (["p9", "20", "", "Kiel", ""], ["p9", "1e300", "1", "Bonn", "x"]):
        table, out = tmp_path / "t.csv", tmp_path / "p.csv"
        write(table, [beside, *rows_of(5, 3), beside])
        words = ("--model", folder / "model", "--features", table, "--out", out)
        assert run("predict", *words)[0] == 0
        found.append(out.read_text().splitlines()[2:-1])
    assert found[0] == found[1]


def test_fit_clips_rows_of_a_table_unless_told_otherwise(run, folder, tmp_path):
    """Half of the norm that a row of three columns, each up to 1, can have."""
    params = persistence.load(folder / "model").get_params()
    assert params["row_scaling"] == "clip"
    assert params["clip_norm"] == pytest.approx(3**0.5 / 2)
    words = ("--set", "row_scaling=unit", "--set", "clip_norm=1.0", "--quiet")
    assert run(*fit(folder, *words, "--out", tmp_path / "model"))[0] == 0
    params = persistence.load(tmp_path / "model").get_params()
    assert (params["row_scaling"], params["clip_norm"]) == ("unit", 1.0)


@pytest.fixture
def model_of_a_table(folder, tmp_path):
    """A copy of the model, in which an evaluation is kept."""
    return shutil.copytree(folder / "model", tmp_path / "copy")


def test_report_of_a_table_shows_what_is_declared(run, folder, tmp_path):
    page, card = tmp_path / "r.html", tmp_path / "c.md"
    words = ("--test", folder / "test.csv", "--test-is-public")
    words += ("--out", page, "--card", card)
    assert run("report", folder / "model", *words)[0] == 0
    text = card.read_text()
    assert "A linear model trained on columns of a table" in text
    assert '"may be": "20 to 80"' in text
    assert '"column": "outcome (the class)"' in text
    assert 'pipeline_tag: "tabular-classification"' in text
    shown = page.read_text()
    assert '<td role="cell" data-label="may be">Bonn, Kiel</td>' in shown
    assert "by what is publicly declared of its columns" in shown
    assert '<td role="cell">unknown</td>' in shown  # a class, by its name


def test_fit_of_rows_is_told_to_name_users_by_a_ledger_of_users(
    fails, folder, tmp_path, capsys
):
    path = tmp_path / "users"
    PrivacyLedger(path, dataset="a", epsilon=30.0, delta=1e-5, unit="user")
    capsys.readouterr()
    charged = ("--ledger", path, "--dataset", "a", "--out", tmp_path / "model")
    message = fails(*fit(folder, *charged))
    assert "unit must be 'user'" in message
    assert "(--users COLUMN of a table," in message
    assert message.rstrip().endswith("Nothing was charged.")


def test_fit_protects_the_users_of_a_column(run, fails, folder, tmp_path):
    out = ("--out", tmp_path / "model", "--users", "patient")
    message = fails(*fit(folder, *out))
    assert "--users must be given together with --max-group-size" in message
    for size in (("--max-group-size", 2), ("--set", "max_group_size=2", "--overwrite")):
        status, said, err = run(*fit(folder, *out, *size))
        assert status == 0, err
        assert "unit: user" in said
    declared = persistence.load_table(tmp_path / "model")["columns"]
    assert declared["patient"] == {"kind": "ignored"}
    words = ("--model", tmp_path / "model", "--features", folder / "test.csv")
    assert run("predict", *words, "--out", tmp_path / "p.csv")[0] == 0


def test_evaluate_measures_on_a_table_and_protects_its_users(
    run, fails, folder, model_of_a_table
):
    words = ("--model", model_of_a_table, "--test", folder / "test.csv")
    status, out, err = run("evaluate", *words)
    assert status == 0, err
    assert "unit: record" in out
    again = (*words, "--overwrite")
    by_user = (*again, "--users", "patient", "--max-group-size", 2)
    status, out, err = run("evaluate", *by_user)
    assert status == 0, err
    assert "unit: user" in out
    model = folder / "by-user"
    whose = ("--users", "patient", "--max-group-size", 2, "--out", model, "--quiet")
    assert run(*fit(folder, *whose))[0] == 0
    told = ("--model", model, "--test", folder / "test.csv")
    assert "the model protects users, but each test record" in run("evaluate", *told)[2]
    assert "have a column 'doctor'" in fails("evaluate", *again, "--users", "doctor")
    assert "are for feature files" in fails("evaluate", *again, "--groups")


def test_declaration_of_a_model_of_users_takes_the_raw_table(run, folder, tmp_path):
    """The frame that holds the column of the users, as it was read."""
    whose = ("--users", "patient", "--max-group-size", 2, "--quiet")
    assert run(*fit(folder, *whose, "--out", tmp_path / "model"))[0] == 0
    columns = persistence.load_table(tmp_path / "model")["columns"]
    columns.pop("outcome")
    frame = pd.read_csv(folder / "test.csv").drop(columns="outcome")
    pipeline = make_pipeline(PublicColumns(columns), load(tmp_path / "model"))
    names = persistence.load_class_names(tmp_path / "model")
    assert names == ["well", "ill", "unknown"]
    assert {names[i] for i in pipeline.predict(frame)} == {"well", "ill"}


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
@pytest.mark.parametrize(
    ("classes", "class_names"),
    [
        (["ill", "unknown", "well"], None),
        (["C", "A", "B"], ["ill", "unknown", "well"]),
        ([0, 1, 2], ["well", "ill", "unknown"]),
    ],
)
def test_evaluate_measures_a_pipeline_that_was_made_in_python(
    run, folder, tmp_path, classes, class_names
):
    """Labels of the table are names; classes of the model are these, or numbers."""
    columns = read_columns(folder / "columns.toml")
    said = dict(columns)
    said.pop("outcome")
    table = pd.read_csv(folder / "train.csv")
    names = class_names or sorted(["ill", "unknown", "well"])
    place = dict(zip(names, sorted(classes), strict=True))
    clf = DPFC(epsilon=20, classes=classes, row_scaling="clip", random_state=0)
    pipeline = make_pipeline(PublicColumns(said), clf)
    pipeline.fit(table.drop(columns="outcome"), table["outcome"].map(place))
    known = {"columns": columns, "target": "outcome"}
    persistence.save(pipeline, tmp_path / "m", table=known, class_names=class_names)
    words = ("--model", tmp_path / "m", "--test", folder / "test.csv")
    status, _, err = run("evaluate", *words, "--epsilon", 20, "--no-scores")
    assert (status, err) == (0, "")
    assert load_evaluation(tmp_path / "m")[0].accuracy.low > 0.7


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_evaluate_names_the_classes_of_a_model_that_are_not_of_its_table(
    fails, folder, tmp_path
):
    columns = read_columns(folder / "columns.toml")
    said = dict(columns)
    said.pop("outcome")
    table = pd.read_csv(folder / "train.csv")
    clf = DPFC(epsilon=20, classes=["sick", "well"], random_state=0)
    pipeline = make_pipeline(PublicColumns(said), clf)
    labels = table["outcome"].replace("ill", "sick")
    pipeline.fit(table.drop(columns="outcome"), labels)
    known = {"columns": columns, "target": "outcome"}
    persistence.save(pipeline, tmp_path / "m", table=known)
    words = ("--model", tmp_path / "m", "--test", folder / "test.csv")
    assert "must have the classes of the model, ['sick', 'well']" in fails(
        "evaluate", *words
    )


def test_users_of_a_table_are_those_of_the_column(folder):
    declared = declared_of(str(folder / "model"))
    assert declared.users is None
    with_users = type(declared)(declared.columns, "outcome", "patient")
    rows = with_users.read(str(folder / "test.csv"))
    assert rows.groups.tolist() == [f"p{i // 2}" for i in range(100)]
    assert rows.X.shape == (100, 5)
    assert rows.y[:3].tolist() == [["well", "ill"].index(r[4]) for r in rows_of(3, 1)]


def test_numbers_name_users_as_well(run, tmp_path):
    draw = np.random.default_rng(0)
    columns = {"X": draw.normal(size=(200, 2)), "y": draw.integers(0, 2, 200)}
    np.savez(tmp_path / "rows.npz", **columns, who=np.arange(200) // 2)
    number = 'kind = "numeric"\nbounds = [-3, 3]\n'
    target = 'kind = "category"\ncategories = [0, 1]\n'
    text = f"[X0]\n{number}[X1]\n{number}[y]\n{target}"
    (tmp_path / "columns.toml").write_text(text)
    words = fit(tmp_path, "--out", tmp_path / "model", train="rows.npz", target="y")
    status, out, _ = run(*words, "--users", "who", "--max-group-size", 1)
    assert status == 0
    assert "unit: user" in out


def test_boolean_target_has_two_classes(run, folder, tmp_path):
    words = ("--columns", tmp_path / "columns.toml", "--quiet")
    text = COLUMNS.replace('kind = "ignored"', 'kind = "ignored"', 1)
    rows = [[*row[:4], str(row[4] == "ill")] for row in rows_of(200, 0)]
    write(folder / "boolean.csv", rows)
    head = text.partition("[outcome]")[0]
    (tmp_path / "columns.toml").write_text(f'{head}[outcome]\nkind = "boolean"\n')
    out = ("--out", tmp_path / "model")
    assert run(*fit(folder, *words, *out, train="boolean.csv"))[0] == 0
    assert persistence.load_class_names(tmp_path / "model") == ["false", "true"]


def test_raw_columns_of_different_size_are_warned_of(run, folder, tmp_path):
    text = COLUMNS.replace("bounds = [20, 80]", 'bounds = [20, 80]\ntreatment = "raw"')
    (tmp_path / "columns.toml").write_text(text)
    words = ("--columns", tmp_path / "columns.toml", "--out", tmp_path / "model")
    _, _, err = run(*fit(folder, *words, "--quiet"))
    assert "raw column 'age' has values up to 80" in err


def test_workflow_takes_a_table(run, folder, tmp_path):
    """Its tests of the estimator, which take long, are as if they were done before."""
    pytest.importorskip("jax_privacy")
    pytest.importorskip("jinja2")
    results = tmp_path / "results"
    words = ("workflow", results, "--train", folder / "train.csv", "--n", 600)
    test = folder / "test.csv"
    words += ("--test", test, "--test-is-public", "--calibration", test)
    words += ("--columns", folder / "columns.toml", "--target", "outcome")
    words += ("--users", "patient", "--max-group-size", 2, "--epsilon", 20, "--quiet")
    assert run(*words, "--n-fits", 0)[0] == 1
    assert "600 records, 5 features, 3 classes" in (results / "plan.txt").read_text()
    for name in ("sanity.txt", "audit.txt"):
        (results / name).write_text("done")
    (results / "audit.json").write_text("{}")
    status, _, err = run(*words, "--n-fits", 0)
    assert status == 0, err
    assert persistence.load_table(results / "model")["target"] == "outcome"
    assert '"column": "age"' in (results / "card.md").read_text()
    assert persistence.load_statement(results / "model").unit == "user"
    assert "temperature" in (results / "calibration.json").read_text()
