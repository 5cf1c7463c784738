"""Pipelines of privfeat's own steps are saved and loaded without pickle."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from privfeat import DPFC, DPLeastSquares, DPLeastSquaresRegressor, PublicColumns
from privfeat.persistence import (
    ModelFileError,
    load,
    load_predictor,
    load_statement,
    load_table,
    save,
)
from privfeat.persistence.written import DECLARED
from tests.persistence.conftest import rewrite, rewrite_arrays

COLUMNS = {
    "age": {"kind": "integer", "bounds": (0, 100), "missing": "indicator"},
    "since": {"kind": "date", "bounds": [pd.Timestamp("2000-01-01").date()] * 1},
    "clinic": {"kind": "category", "categories": ["Bonn", "Kiel"]},
}
COLUMNS["since"]["bounds"].append(pd.Timestamp("2020-01-01").date())


@pytest.fixture(scope="module")
def frame():
    rows = [(30, "2003-05-01", "Bonn"), (None, "2019-01-01", "Kiel")] * 10
    return pd.DataFrame(rows, columns=list(COLUMNS))


@pytest.fixture(scope="module")
def fitted(frame):
    clf = DPLeastSquares(epsilon=5.0, classes=(0, 1), row_scaling="clip")
    return make_pipeline(PublicColumns(COLUMNS), clf).fit(frame, np.arange(20) % 2)


@pytest.fixture
def folder(fitted, tmp_path):
    save(fitted, tmp_path / "model", class_names=["well", "ill"])
    return tmp_path / "model"


def steps_of(folder):
    return json.loads((folder / "model.json").read_text())["steps"]


def test_load_returns_the_pipeline_that_was_saved(fitted, folder, frame):
    loaded = load(folder)
    assert type(loaded) is Pipeline
    assert [name for name, _ in loaded.steps] == [name for name, _ in fitted.steps]
    np.testing.assert_array_equal(
        loaded.predict_proba(frame), fitted.predict_proba(frame)
    )
    assert loaded[-1].privacy_ == load_statement(folder)
    facts = (*fitted[-1].privacy_.public, DECLARED)
    assert loaded[-1].privacy_ == replace(fitted[-1].privacy_, public=facts)
    np.testing.assert_array_equal(loaded.feature_names_in_, fitted.feature_names_in_)


def test_load_returns_a_pipeline_of_a_regressor_fitted_to_an_array(tmp_path):
    columns = {"age": {"kind": "numeric", "bounds": [0, 100]}}
    model = DPLeastSquaresRegressor(epsilon=1.0, target_bounds=(0, 1))
    X = np.linspace(0, 100, 30)[:, None]
    pipeline = make_pipeline(PublicColumns(columns), model).fit(X, X[:, 0] / 101)
    save(pipeline, tmp_path)
    np.testing.assert_array_equal(load(tmp_path).predict(X), pipeline.predict(X))


def test_load_table_returns_the_columns_of_a_pipeline(folder):
    declared = load_table(folder)
    assert declared["target"] is None
    assert declared["columns"]["since"]["bounds"] == ["2000-01-01", "2020-01-01"]


def test_load_predictor_takes_features_of_the_columns_of_a_pipeline(
    fitted, folder, frame
):
    features = fitted[0].transform(frame)
    np.testing.assert_array_equal(
        load_predictor(folder).predict(features), fitted.predict(frame)
    )


def test_load_predictor_returns_none_where_other_steps_come_first(tmp_path, frame):
    features = {name: {"kind": "numeric", "bounds": [-1, 1]} for name in "abcde"}
    inner = PublicColumns(features)
    clf = DPLeastSquares(epsilon=5.0, classes=(0, 1))
    pipeline = make_pipeline(PublicColumns(COLUMNS), inner, clf)
    save(pipeline.fit(frame, np.arange(20) % 2), tmp_path)
    assert load_predictor(tmp_path) is None
    np.testing.assert_array_equal(
        load(tmp_path).predict(frame), pipeline.predict(frame)
    )


def test_save_writes_no_folder_of_a_pipeline_and_no_seed(fitted, tmp_path):
    model = DPLeastSquares(epsilon=5.0, classes=(0, 1), random_state=987654321)
    X = np.eye(4)
    with pytest.warns(match="random_state"):
        model.fit(X, [0, 1, 0, 1])
    save(Pipeline([("model", model)], memory="secret/place"), tmp_path)
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"987654321" not in written
    assert b"secret" not in written
    assert load(tmp_path)["model"].privacy_.seeded


def test_save_refuses_a_pipeline_with_a_step_of_another_package(tmp_path):
    clf = DPLeastSquares(epsilon=5, classes=(0, 1)).fit(np.eye(4), [0, 1, 0, 1])
    scaled = make_pipeline(StandardScaler().fit(np.eye(4)), clf)
    with pytest.raises(TypeError, match="step 'standardscaler' must be of privfeat"):
        save(scaled, tmp_path / "model")

    class Derived(PublicColumns):
        pass

    Derived.__name__ = "PublicColumns"
    columns = Derived({"a": {"kind": "numeric", "bounds": [0, 1]}})
    for step in ("passthrough", columns):
        with pytest.raises(TypeError, match="must be of privfeat or one of"):
            save(make_pipeline(step, scaled[-1]), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_save_refuses_a_subclass_of_pipeline(fitted, tmp_path):
    class Derived(Pipeline):
        pass

    Derived.__name__ = "Pipeline"
    with pytest.raises(TypeError, match="estimator must be one of"):
        save(Derived(fitted.steps), tmp_path)


def test_save_refuses_a_pipeline_without_one_statement(fitted, tmp_path):
    for steps in (fitted[:1], make_pipeline(fitted[1], fitted[1])):
        with pytest.raises(ValueError, match="must have one step with a privacy"):
            save(steps, tmp_path)
    assert not any(tmp_path.iterdir())


def test_save_refuses_a_pipeline_that_is_not_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        save(make_pipeline(PublicColumns(COLUMNS), DPFC()), tmp_path)


def change(folder, number, **changes):
    steps = steps_of(folder)
    steps[number] |= changes
    rewrite(folder, steps=[{k: v for k, v in s.items() if v != ""} for s in steps])


@pytest.mark.parametrize(
    ("number", "changes", "message"),
    [
        (0, {"estimator": "StandardScaler"}, "a step is of no known class"),
        (0, {"estimator": 3}, "a field of another kind"),
        (0, {"name": ""}, "lacks a field"),
        (0, {"extra": 1}, "one too many"),
        (0, {"fitted": {"n_features_in_": -1}}, "no whole numbers"),
        (0, {"fitted": {"n_samples_": 20}}, "not those of a step"),
        (0, {"params": {"no_such": 1}}, "the parameters do not fit"),
        (0, {"params": {"random_state": 3}}, "holds random_state"),
        (0, {"name": "dpleastsquares"}, "not those of its steps"),
        (1, {"estimator": "LogisticRegression"}, "a step is of no known class"),
        (1, {"privacy": ""}, "or lacks its own"),
        (1, {"privacy": {}}, "it holds no privacy statement"),
        (1, {"fitted": {}}, "fitted attributes"),
    ],
)
def test_load_refuses_a_forged_step(folder, number, changes, message):
    change(folder, number, **changes)
    with pytest.raises(ModelFileError, match=message):
        load(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"estimator": "DPFC"},
        {"fitted": {"n": 1}},
        {"steps": []},
        {"steps": [3]},
        {"steps": {}},
        {"params": {"ledger": "a"}},
        {"params": {"memory": "a"}},
        {"params": {"other": "a"}},
        {"class_names": ["a"]},
    ],
)
def test_load_refuses_a_forged_pipeline(folder, changes):
    rewrite(folder, **changes)
    with pytest.raises(ModelFileError):
        load(folder)


def test_load_refuses_a_step_whose_statement_is_not_that_of_the_pipeline(folder, frame):
    other = DPLeastSquares(epsilon=7.0, classes=(0, 1)).fit(np.eye(4), [0, 1, 0, 1])
    change(folder, 1, privacy=json.loads(other.privacy_.to_json()))
    with pytest.raises(ModelFileError, match="is not that of its step"):
        load(folder)


def test_load_refuses_arrays_of_no_step(folder):
    rewrite_arrays(folder, **{"7/coef_": np.zeros(1)})
    with pytest.raises(ModelFileError, match="are not those of its steps"):
        load(folder)


def test_load_refuses_arrays_that_are_not_of_a_step(folder):
    rewrite_arrays(folder, **{"0/mean_": np.zeros(1)})
    with pytest.raises(ModelFileError, match="not those of a step"):
        load(folder)
