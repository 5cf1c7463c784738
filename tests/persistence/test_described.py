"""Names that a model was saved with go on with it, until it is fitted anew."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from privfeat import DPFC, PrivatePipeline, PublicColumns, load, save
from privfeat.analysis.rates import shifted_rates
from privfeat.persistence import (
    load_class_names,
    load_origin,
    load_statement,
    load_table,
)
from privfeat.persistence.written import DECLARED

COLUMNS = {
    "age": {"kind": "integer", "bounds": [0, 100]},
    "outcome": {"kind": "category", "categories": ["well", "ill"]},
}
TABLE = {"columns": COLUMNS, "target": "outcome"}
NAMES = ["well", "ill"]
FEATURES = {"model": "a network"}


def classifier(**more):
    return DPFC(epsilon=5.0, classes=(0, 1), n_iter=1, **more)


def frame():
    return pd.DataFrame({"age": np.arange(20) * 5}), np.arange(20) // 10


@pytest.fixture
def folder(tmp_path):
    X, y = frame()
    clf = classifier().fit(X.to_numpy(), y)
    save(clf, tmp_path / "model", class_names=NAMES, table=TABLE, features=FEATURES)
    return tmp_path / "model"


def known(folder):
    return load_class_names(folder), load_table(folder), load_origin(folder)


def shifted(model):
    return shifted_rates(model, before=[1, 1], after=[1, 9])


@pytest.mark.parametrize("change", [lambda model: model, shifted])
def test_save_of_a_loaded_model_keeps_its_names(folder, tmp_path, change):
    save(change(load(folder)), tmp_path / "alert")
    assert known(tmp_path / "alert") == known(folder) == (NAMES, TABLE, FEATURES)


def test_save_takes_what_it_is_given_before_what_was_loaded(folder, tmp_path):
    save(load(folder), tmp_path / "alert", class_names=["no", "yes"])
    assert known(tmp_path / "alert") == (["no", "yes"], TABLE, FEATURES)


def test_save_of_another_fit_forgets_the_names(folder, tmp_path):
    X, y = frame()
    save(load(folder).fit(X.to_numpy(), y), tmp_path / "anew")
    assert known(tmp_path / "anew") == (None, None, {})


def pipelines():
    columns = {"age": COLUMNS["age"]}
    yield make_pipeline(PublicColumns(columns), classifier())
    steps = [("columns", PublicColumns(columns)), ("clf", DPFC(classes=(0, 1)))]
    yield PrivatePipeline(steps, epsilon=5.0)


@pytest.mark.parametrize("pipeline", [*pipelines()], ids=lambda p: type(p).__name__)
def test_pipeline_keeps_its_target_until_it_is_fitted_anew(pipeline, tmp_path):
    save(pipeline.fit(*frame()), tmp_path / "model", class_names=NAMES, table=TABLE)
    save(shifted(load(tmp_path / "model")), tmp_path / "alert")
    assert known(tmp_path / "alert")[:2] == (NAMES, TABLE)
    save(load(tmp_path / "model").fit(*frame()), tmp_path / "anew")
    names, table, _ = known(tmp_path / "anew")
    assert names is None
    assert table["target"] is None


@pytest.mark.parametrize("pipeline", [*pipelines()], ids=lambda p: type(p).__name__)
def test_statement_of_a_saved_pipeline_takes_its_declaration_as_public(
    pipeline, tmp_path
):
    save(pipeline.fit(*frame()), tmp_path / "model")
    found = load_statement(tmp_path / "model").public
    assert found.count(DECLARED) == 1
    save(load(tmp_path / "model"), tmp_path / "again")
    assert load_statement(tmp_path / "again").public == found


def test_statement_of_features_names_no_declaration(tmp_path):
    X, y = frame()
    save(classifier().fit(X.to_numpy(), y), tmp_path / "model")
    assert DECLARED not in load_statement(tmp_path / "model").public
