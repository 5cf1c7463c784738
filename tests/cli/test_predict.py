import csv

import numpy as np
import pytest

from privfeat import DPLeastSquaresRegressor, open_features, persistence
from privfeat.data import write_features
from tests.cli.tiny import CLASS_NAMES, fit_arguments, make_split


def read(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_predict_writes_the_predictions_of_the_model(run, features, model, tmp_path):
    out = tmp_path / "p.csv"
    status, printed, _ = run(
        "predict", "--model", model, "--features", features, "--out", out
    )
    assert status == 0
    assert printed == f"60 predictions written to {out}\n"
    expected = persistence.load(model).predict(open_features(features)["test"].X)
    header, *rows = read(out)
    assert header == ["row", "class", "name"]
    assert rows == [
        [str(i), str(label), CLASS_NAMES[label]] for i, label in enumerate(expected)
    ]


def test_predict_leaves_out_names_that_the_model_has_not(
    run, features, model, tmp_path
):
    bare = persistence.load(model)
    del bare.described_
    persistence.save(bare, tmp_path / "bare")
    out = tmp_path / "p.csv"
    run(
        *("predict", "--model", tmp_path / "bare"),
        *("--features", f"{features}:train", "--out", out),
    )
    header, *rows = read(out)
    assert header == ["row", "class"]
    assert len(rows) == 240


@pytest.mark.parametrize("n_features", [3, 4])
def test_predict_that_fails_keeps_the_earlier_file(fails, model, tmp_path, n_features):
    X, y = make_split(30, 2)
    other, out = tmp_path / "other.h5", tmp_path / "p.csv"
    write_features(other, {"test": (X[:, :n_features], y)}, class_names=CLASS_NAMES)
    out.write_text("kept")
    message = fails("predict", "--model", model, "--features", other, "--out", out)
    assert "features" in message
    assert out.read_text() == "kept"
    assert {path.name for path in tmp_path.iterdir()} == {"other.h5", "p.csv"}


def test_predict_refuses_a_missing_model(fails, features, tmp_path):
    arguments = ("--features", features, "--out", tmp_path / "p.csv")
    message = fails("predict", "--model", tmp_path / "none", *arguments)
    assert "is not a privfeat model" in message


def test_predict_names_a_missing_folder(fails, features, model, tmp_path):
    out = tmp_path / "none" / "p.csv"
    message = fails("predict", "--model", model, "--features", features, "--out", out)
    assert "No such file or directory" in message


@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_predict_writes_the_numbers_of_a_regressor(run, features, tmp_path):
    X = open_features(features)["train"].X[:]
    regressor = DPLeastSquaresRegressor(epsilon=8).fit(X, X[:, 0] / 10)
    persistence.save(regressor, tmp_path / "model")
    out = tmp_path / "p.csv"
    status, _, _ = run(
        *("predict", "--model", tmp_path / "model"),
        *("--features", f"{features}:train", "--out", out),
    )
    assert status == 0
    header, *rows = read(out)
    assert header == ["row", "prediction"]
    found = [float(value) for _, value in rows]
    np.testing.assert_array_equal(found, regressor.predict(X))


def test_predict_compares_how_features_were_made(run, fails, made_like, tmp_path):
    """Another network is refused; of other views, predictions are worse."""
    views = ["zoom 1", "zoom 1 mirrored"]
    same, other = made_like("same"), made_like("other", model="tiny")
    fewer, cut = made_like("fewer", crop=9), made_like("views", views=views)
    model, out = tmp_path / "model", tmp_path / "p.csv"
    assert run(*fit_arguments(same, model, "--quiet"))[0] == 0
    assert persistence.load_origin(model) == {
        "model": "toy",
        "pooling": "avg",
        "crop": 8,
    }
    predict = ("predict", "--model", model, "--out", out, "--features")
    assert run(*predict, same)[::2] == (0, "")
    message = fails(*predict, other)
    assert "but model is 'tiny' and was 'toy'. Extract them in the same way." in message
    for file, words in (
        (fewer, "but crop is 9 and was 8."),
        (cut, "but views is ['zoom 1', 'zoom 1 mirrored'] and was ['zoom 1']."),
    ):
        status, _, err = run(*predict, file)
        assert status == 0
        assert err.startswith("privfeat: warning: --features must be features")
        assert words in err


def test_fit_compares_how_test_features_were_made(run, fails, made_like, tmp_path):
    same, other = made_like("same"), made_like("other", weights_sha256="b")
    third, views = made_like("third", weights_sha256="a"), made_like("v", views=["a"])
    fit = fit_arguments(third, tmp_path / "model", "--test-is-public", "--test")
    assert "weights_sha256 is 'b' and was 'a'" in fails(*fit, other)
    assert not (tmp_path / "model").exists()
    assert "warning" not in run(*fit, same)[2]
    assert "views is ['a'] and was ['zoom 1']" in run(*fit, views, "--overwrite")[2]


def test_model_that_python_changed_predicts_from_a_raw_table(run, patients, tmp_path):
    changed = persistence.load(patients / "model")
    changed.intercept_ = changed.intercept_ + 0.0
    persistence.save(changed, tmp_path / "alert")
    words = ("--features", patients / "test.csv", "--id", "patient", "--out")
    for model, out in ((patients / "model", "a.csv"), (tmp_path / "alert", "b.csv")):
        assert run("predict", "--model", model, *words, tmp_path / out)[0] == 0
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    statement = persistence.load_statement(tmp_path / "alert")
    assert statement == persistence.load_statement(patients / "model")
