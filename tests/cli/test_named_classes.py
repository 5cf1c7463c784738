"""Commands compare the names of classes before they charge a budget of a test."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from privfeat import DPFC, PrivacyLedger, PublicColumns, save
from privfeat.data import write_features
from privfeat.metrics.files import load_evaluation
from tests.cli.tiny import CLASS_NAMES, fit_arguments, make_split

AGE = {"age": {"kind": "numeric", "bounds": [0, 100]}}
pytestmark = pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")


def saved(tmp_path, classes, target, told=None):
    """Save a model that finds the old, whose class is the last; return a command."""
    age = np.random.default_rng(0).uniform(0, 100, 1000)
    words = target.get("categories", ["False", "True"])
    ill = words[-1] if "ill" not in words else "ill"
    well = next(word for word in words if word != ill)
    frame = pd.DataFrame({"age": age, "diagnosis": np.where(age > 50, ill, well)})
    frame.to_csv(tmp_path / "o.csv", index=False)
    clf = DPFC(epsilon=9, classes=classes, row_scaling="clip", random_state=0)
    pipeline = make_pipeline(PublicColumns(AGE), clf)
    pipeline.fit(frame[["age"]], np.array(classes)[(age > 50).astype(int)])
    table = {"columns": {**AGE, "diagnosis": target}, "target": "diagnosis"}
    save(pipeline, tmp_path / "m", table=table, class_names=told)
    PrivacyLedger(tmp_path / "t.ledger", dataset="o", epsilon=9, delta=1e-5)
    words = ("--ledger", tmp_path / "t.ledger", "--dataset", "o", "--epsilon", 8)
    return ("evaluate", "--model", tmp_path / "m", "--test", tmp_path / "o.csv", *words)


def charges(tmp_path, dataset="o"):
    return len(PrivacyLedger(tmp_path / "t.ledger", dataset=dataset).history)


@pytest.mark.parametrize("classes", [[False, True], [0, 1]])
@pytest.mark.parametrize("words", [["ill", "well"], ["well", "ill"]])
def test_numbers_are_not_taken_for_categories(run, tmp_path, classes, words):
    target = {"kind": "category", "categories": words}
    status, _, err = run(*saved(tmp_path, classes, target))
    assert status == 1
    assert "Save the model with class_names" in err
    assert err.endswith("Nothing was charged.\n")
    assert charges(tmp_path) == 0


@pytest.mark.parametrize(
    ("classes", "target", "told"),
    [
        (
            [False, True],
            {"kind": "category", "categories": ["ill", "well"]},
            ["well", "ill"],
        ),
        ([0, 1], {"kind": "category", "categories": ["ill", "well"]}, ["well", "ill"]),
        ([False, True], {"kind": "boolean"}, None),
        ([0, 1], {"kind": "boolean"}, None),
        ([0.0, 1.0], {"kind": "category", "categories": ["0", "1"]}, None),
    ],
)
def test_classes_whose_names_are_known_are_measured(
    run, tmp_path, classes, target, told
):
    assert run(*saved(tmp_path, classes, target, told))[0] == 0
    assert load_evaluation(tmp_path / "m")[0].accuracy.low > 0.9
    assert charges(tmp_path) == 1


def test_floats_are_the_categories_of_their_numbers_in_any_order(run, tmp_path):
    target = {"kind": "category", "categories": ["1", "0"]}
    words = saved(tmp_path, [0.0, 1.0], target)
    frame = pd.read_csv(tmp_path / "o.csv")
    frame["diagnosis"] = (frame["age"] > 50).astype(int)
    frame.to_csv(tmp_path / "o.csv", index=False)
    assert run(*words)[0] == 0
    assert load_evaluation(tmp_path / "m")[0].accuracy.low > 0.9


@pytest.fixture
def others(tmp_path):
    """Return a model of Python, and a file whose classes stand in another order."""
    X, y = make_split(240, 0)
    clf = DPFC(epsilon=9, classes=range(4), random_state=0).fit(X, y)
    save(clf, tmp_path / "m", class_names=CLASS_NAMES)
    names, (X, y) = CLASS_NAMES[::-1], make_split(60, 2)
    write_features(tmp_path / "o.h5", {"test": (X, 3 - y)}, class_names=names)
    return tmp_path


def test_evaluate_refuses_features_of_other_classes(run, others):
    PrivacyLedger(others / "t.ledger", dataset="o", epsilon=9, delta=1e-5)
    words = ("--ledger", others / "t.ledger", "--dataset", "o", "--epsilon", 8)
    words = ("evaluate", "--model", others / "m", "--test", others / "o.h5", *words)
    status, _, err = run(*words)
    assert status == 1
    assert "o.h5 must have the classes of" in err
    assert "labels are their numbers" in err
    assert charges(others) == 0


def test_report_refuses_features_of_other_classes(fails, others):
    words = ("--test", others / "o.h5", "--test-is-public", "--out", others / "r.html")
    assert "must have the classes of" in fails("report", others / "m", *words)


@pytest.mark.usefixtures("fit_is_forbidden")
@pytest.mark.parametrize("option", ["--calibration", "--test"])
def test_workflow_refuses_features_of_other_classes(fails, features, others, option):
    pytest.importorskip("jax_privacy")
    pytest.importorskip("jinja2")
    words = ("--estimator", "DPLeastSquares", "--n", 240, "--train", features)
    more = () if option == "--calibration" else ("--test-is-public",)
    words = ("workflow", others / "w", *words, option, others / "o.h5", *more)
    assert "o.h5 must have the classes of" in fails(*words)
    assert not (others / "w").exists()


def test_files_without_names_are_taken_as_they_are(run, features, tmp_path):
    folder = tmp_path / "m"
    assert run(*fit_arguments(features, folder, "--quiet"))[0] == 0
    write_features(tmp_path / "n.h5", {"test": make_split(60, 1)})
    words = ("--model", folder, "--test", tmp_path / "n.h5", "--epsilon", 8)
    assert run("evaluate", *words)[0] == 0
