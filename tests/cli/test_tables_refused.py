"""What commands refuse of tables and declarations, and the draft of one."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from privfeat import PrivacyLedger, persistence
from privfeat.cli.shared.tables import Declared
from privfeat.cli.shared.terminal import CommandError
from privfeat.data.sharing import share_rows
from tests.cli.patients import COLUMNS, HEADER, SECRET, fit, rows_of, write


@pytest.fixture
def folder(patients):
    """Return the folder of a table, its declaration and a model."""
    return patients


def test_report_refuses_a_table_of_training(fails, folder, tmp_path):
    words = ("--test", folder / "train.csv", "--test-is-public")
    words += ("--out", tmp_path / "r.html")
    assert "must not be the training split" in fails("report", folder / "model", *words)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            ["p", SECRET + "x", "", "Bonn", "ill"],
            "column 'age' of kind integer must ho",
        ),
        (["p", "", "", "Bonn", "ill"], "column 'age' must have no missing value"),
        (["p", 30, "", SECRET, "ill"], "column 'clinic' must hold the categories"),
        (["p", 30, "", "Bonn", SECRET], "column 'outcome' must hold the categories"),
        (["p", 30, "", "Bonn", ""], "column 'outcome' must have no missing value"),
        (
            [" ", 30, "", "Bonn", "ill"],
            "'patient' of --users: groups must name",
        ),
        (["p", 30, "", "Bonn"], "as many values in each other"),
    ],
)
@pytest.mark.usefixtures("fit_is_forbidden")
def test_fit_refuses_values_that_are_not_declared(fails, folder, tmp_path, row, words):
    write(folder / "bad.csv", [*rows_of(5, 0), row])
    out = ("--out", tmp_path / "model", "--users", "patient", "--max-group-size", 2)
    message = fails(*fit(folder, *out, train="bad.csv"))
    assert words in message
    assert SECRET not in message
    assert not (tmp_path / "model").exists()


@pytest.mark.usefixtures("fit_is_forbidden")
def test_fit_names_all_columns_with_refused_values(fails, folder, tmp_path, capsys):
    """One message, in the order of the columns; and with a ledger, what it cost."""
    bad = [["p", SECRET + "x", "", SECRET, "ill"], ["p", 30, SECRET, "Bonn", SECRET]]
    write(folder / "bad.csv", [*rows_of(5, 0), *bad])
    ledger = tmp_path / "a.ledger"
    PrivacyLedger(ledger, dataset="a", epsilon=30, delta=1e-5)
    capsys.readouterr()
    out = ("--out", tmp_path / "model", "--ledger", ledger, "--dataset", "a")
    message = fails(*fit(folder, *out, train="bad.csv"))
    named = re.findall(r"column '(\w+)'", message)
    assert named == ["age", "smoker", "clinic", "outcome"]
    assert message.count("\n") == 4  # a line for each
    assert message.rstrip().endswith("Nothing was charged.")
    assert SECRET not in message
    assert PrivacyLedger(ledger, dataset="a").history == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "age"], "--target must be declared a category or boolean for DP"),
        (["--target", "patient"], "'patient' of --target must be declared a category"),
        (["--target", "sex"], "in --columns ('patient', 'age', 'smoker', 'clinic', "),
        (["--users", "sex"], "train.csv must have a column 'sex', got none"),
        (["--users", "outcome"], "--users must be another column than --target"),
        (["--groups"], "--groups and --no-groups are for feature files"),
        (
            ["--test", "train.csv", "--test-is-public"],
            "--test must not be the training split",
        ),
        (
            ["--test", "none.csv", "--test-is-public"],
            "none.csv: No such file or directory",
        ),
        (["--train", "features.h5"], "features.h5 must be a table, since columns"),
        (["--public", "train.csv"], "--public must not be the training split"),
    ],
)
@pytest.mark.usefixtures("fit_is_forbidden")
def test_fit_on_a_table_refuses_other_options(
    fails, folder, tmp_path, monkeypatch, words, message
):
    monkeypatch.chdir(folder)
    assert message in fails(*fit(folder, "--out", tmp_path / "model", *words))


@pytest.mark.usefixtures("fit_is_forbidden")
def test_fit_refuses_a_target_that_a_row_may_lack(fails, folder, tmp_path):
    for said in ('missing = "neutral"', 'unseen = "neutral"'):
        (tmp_path / "columns.toml").write_text(f"{COLUMNS}{said}\n")
        words = ("--columns", tmp_path / "columns.toml", "--out", tmp_path / "model")
        assert "must have a value in each row" in fails(*fit(folder, *words))


@pytest.mark.usefixtures("fit_is_forbidden")
def test_fit_refuses_a_table_without_a_declaration(fails, folder, tmp_path):
    words = ("--estimator", "DPLeastSquares", "--out", tmp_path / "model")
    message = fails("fit", *words, "--train", folder / "train.csv")
    assert "Pass --columns and --target; `privfeat columns` makes a draft" in message
    message = fails("fit", *words, "--train", "x.h5", "--target", "a")
    assert "--target must be given together with --columns" in message
    assert "--users must be given" in fails(
        "fit", *words, "--train", "x.h5", "--users", "a"
    )
    declared = ("--train", folder / "train.csv", "--columns", folder / "columns.toml")
    assert "a table needs --target" in fails("fit", *words, *declared)


@pytest.mark.usefixtures("fit_is_forbidden")
def test_fit_refuses_columns_that_are_not_declared(fails, folder, tmp_path):
    rows = [[*row, 1] for row in rows_of(5, 0)]
    write(folder / "more.csv", rows, [*HEADER, "weight"])
    write(folder / "empty.csv", [])
    out = ("--out", tmp_path / "model")
    assert "column 'weight' is not" in fails(*fit(folder, *out, train="more.csv"))
    assert "must have at least 1 row" in fails(*fit(folder, *out, train="empty.csv"))


def test_models_of_features_and_of_tables_refuse_each_other(
    fails, folder, model, features, tmp_path
):
    out = ("--out", tmp_path / "p.csv")
    table = ("predict", "--model", folder / "model", "--features", features)
    assert "must be a table, since columns" in fails(*table, *out)
    other = ("predict", "--model", model, "--features", folder / "test.csv")
    refused = fails(*other, *out)
    assert "is a table, but the model knows no columns of one" in refused
    assert "--columns" not in refused  # predict has no such option
    measured = ("evaluate", "--model", model, "--test", folder / "test.csv")
    assert "the model knows no columns of one" in fails(*measured)


def test_columns_drafts_from_names_alone(run, fails, folder, tmp_path):
    """The draft is the same for other values, and refused until it is filled in."""
    write(tmp_path / "one.csv", rows_of(3, 0))
    write(tmp_path / "two.csv", [[SECRET] * 5])
    drafts = [
        run("columns", tmp_path / n, "--from-schema")[1] for n in ("one.csv", "two.csv")
    ]
    assert drafts[0] == drafts[1]
    (tmp_path / "columns.toml").write_text(drafts[0])
    words = ("--columns", tmp_path / "columns.toml", "--out", tmp_path / "model")
    message = fails(*fit(folder, *words))
    assert "columns.toml: kind of column 'patient' must be one of" in message
    assert "got '?'" in message
    assert "FILE must be a table" in fails("columns", "x.h5", "--from-schema")
    assert run("columns", tmp_path / "one.csv")[0] == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["Maria", "yes"], ["Anna", "yes"]),  # a value that stands there again
        (["Maria", "1954-03-02"], ["Anna", "1960-01-01"]),
        (["Maria", "1954-03-02 10:15"], ["Anna", "1960-01-01 10:15"]),
    ],
)
def test_columns_refuses_a_record_in_the_place_of_names(run, tmp_path, first, second):
    """The record was printed as names of columns."""
    lines = [",".join(line) for line in (first, second)]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    code, out, err = run("columns", tmp_path / "x.csv", "--from-schema")
    assert code == 1
    assert "Add a line of names" in err
    assert not any(value in out + err for value in first)


def test_model_with_a_damaged_declaration_is_refused(folder, tmp_path):
    from privfeat.persistence.model_folder import digest

    document = json.loads((folder / "model" / "model.json").read_text())
    for table in ({}, {"columns": {}, "target": None}, {"columns": 3, "target": "x"}):
        document["table"] = table
        document["sha256"] = digest(document)
        (tmp_path / "model.json").write_text(json.dumps(document))
        with pytest.raises(persistence.ModelFileError, match="declares no columns"):
            persistence.load_table(tmp_path)


@pytest.mark.parametrize("nobody", ["", "  ", "NA", b"", b"nan"])
def test_rows_without_a_user_are_refused_in_arrays_too(tmp_path, nobody):
    path = tmp_path / "a.npz"
    users = np.array(
        [f"p{i}" for i in range(9)], "S3" if isinstance(nobody, bytes) else "U3"
    )
    users[4] = nobody
    np.savez(path, age=np.full(9, 30), who=users, ill=np.zeros(9, int))
    columns = {
        "age": {"kind": "integer", "bounds": [20, 80]},
        "ill": {"kind": "category", "categories": ["0", "1"]},
        "who": {"kind": "ignored"},
    }
    with pytest.raises(CommandError, match="--users: groups must name the user"):
        Declared(columns, "ill", "who").read(str(path))


def test_fit_refuses_most_of_its_rows_as_public(fails, folder, tmp_path):
    """In another order, a part of them, or with others."""
    lines = (folder / "train.csv").read_text().splitlines()
    others = (folder / "test.csv").read_text().splitlines()[1:50]
    part = "\n".join([lines[0], *lines[400:100:-1], *others])
    (tmp_path / "part.csv").write_text(f"{part}\n")
    out = (
        "--out",
        tmp_path / "model",
        "--test",
        tmp_path / "part.csv",
        "--test-is-public",
    )
    assert "--test must not be the training split" in fails(*fit(folder, *out))


@pytest.mark.parametrize("shape", [(5000, 6), (100, 6), (12, 3)])
def test_rows_in_another_order_are_noticed_however_few_differ(shape):
    rows = np.random.default_rng(0).integers(0, 2, shape)
    one, other = (SimpleNamespace(X=part) for part in (rows, rows[::-1]))
    assert share_rows(one, other)
    assert not share_rows(one, SimpleNamespace(X=rows[1:]))  # in any two tables


def test_predict_does_not_advise_what_changes_the_features(fails, folder, tmp_path):
    """A saved model has its number of features: none can become ignored."""
    words = ("predict", "--model", folder / "model", "--features", tmp_path / "t.csv")
    words += ("--out", tmp_path / "p.csv")
    write(tmp_path / "t.csv", [["p", "", "Bonn"]], ["patient", "smoker", "clinic"])
    message = fails(*words)
    assert "Before a fit it may be declared ignored; later, add it empty" in message
    write(tmp_path / "t.csv", [["p", "", "", "Bonn"]], HEADER[:4])
    message = fails(*words)
    assert "Declare missing as neutral or a public constant" in message
    assert "before a fit also as indicator" in message


@pytest.mark.usefixtures("fit_is_forbidden")
def test_rows_without_a_target_are_to_be_left_out(fails, folder, tmp_path):
    write(folder / "bad.csv", [*rows_of(5, 0), ["p", 30, "", "Bonn", ""]])
    message = fails(*fit(folder, "--out", tmp_path / "model", train="bad.csv"))
    assert "got one. Leave rows without a value out of the table." in message
    assert "neutral" not in message
