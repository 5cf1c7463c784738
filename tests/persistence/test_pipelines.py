"""A private pipeline is saved whole, and read with checks."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import Normalizer, PolynomialFeatures, StandardScaler

from privfeat import (
    DPLeastSquares,
    DPLeastSquaresRegressor,
    DPNearestMean,
    ModelFileError,
    PrivatePipeline,
    load,
    save,
)
from privfeat.persistence import load_predictor, load_statement
from privfeat.persistence.model_folder import digest
from privfeat.preprocessing import DPStandardScaler
from tests.pipeline.conftest import columns, scaled

__all__ = ["columns"]


@pytest.fixture
def saved(tmp_path, columns):
    model = scaled(shares={"scale": 1, "clf": 3}).fit(*columns)
    save(model, tmp_path / "m")
    return model, tmp_path / "m"


def rewritten(path, change):
    """Change a document, with a checksum that fits."""
    document = json.loads((path / "model.json").read_text())
    change(document)
    document["sha256"] = digest(document)
    (path / "model.json").write_text(json.dumps(document))


def test_a_loaded_pipeline_predicts_and_says_the_same(saved, columns):
    model, path = saved
    read = load(path)
    for method in ("predict", "predict_proba", "decision_function"):
        one, two = (getattr(m, method)(columns[0]) for m in (model, read))
        np.testing.assert_array_equal(one, two)
    assert read.privacy_ == model.privacy_ == load_statement(path)
    assert all(step.privacy_ is read.privacy_ for _, step in read.steps_)
    assert read.shares == {"scale": 1, "clf": 3}
    assert read.classes_.tolist() == [0, 1]


def test_a_loaded_pipeline_can_be_fitted_again(saved, columns):
    read = load(saved[1])
    assert read.steps[0][1].rho is None
    assert not hasattr(read.steps[1][1], "coef_")
    assert read.fit(*columns).privacy_.releases == saved[0].privacy_.releases


def test_a_pipeline_keeps_the_names_of_its_columns(tmp_path, columns):
    X, y = columns
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = scaled().fit(table, y)
    save(model, tmp_path / "m")
    read = load(tmp_path / "m")
    assert read.feature_names_in_.tolist() == ["a", "b", "c"]
    assert read.get_feature_names_out().tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(read.predict(table), model.predict(table))


def test_public_steps_are_saved(tmp_path, columns):
    from privfeat import PublicColumns

    declared = {n: {"kind": "numeric", "bounds": [-3, 3]} for n in "abc"}
    steps = [
        ("columns", PublicColumns(declared)),
        ("more", PolynomialFeatures(2)),
        ("norm", Normalizer("l1")),
        ("clf", DPLeastSquares(classes=[0, 1])),
    ]
    table = pd.DataFrame(columns[0], columns=list("abc"))
    model = PrivatePipeline(steps, epsilon=1.0).fit(table, columns[1])
    save(model, tmp_path / "m")
    read = load(tmp_path / "m")
    np.testing.assert_array_equal(read.predict_proba(table), model.predict_proba(table))


TEXTS, LABELS = ["very ill", "quite well"] * 40, [0, 1] * 40
HASHED = [
    (HashingVectorizer(n_features=16, ngram_range=(1, 2)), TEXTS),
]


def of_texts(first):
    steps = [("hash", first), ("clf", DPNearestMean(classes=[0, 1], center=False))]
    return PrivatePipeline(steps, epsilon=1.0)


@pytest.mark.parametrize(("first", "records"), HASHED)
def test_pipelines_of_texts_are_saved(tmp_path, first, records):
    model = of_texts(first).fit(records, LABELS)
    save(model, tmp_path / "m")
    read = load(tmp_path / "m")
    np.testing.assert_array_equal(
        read.predict_proba(records), model.predict_proba(records)
    )
    assert repr(read.privacy_) == repr(model.privacy_)


@pytest.mark.parametrize(
    "params", [{"input": "filename"}, {"ngram_range": [1, 2]}, {"analyzer": "mine"}]
)
def test_a_planted_step_reads_no_files_and_runs_no_code(tmp_path, params):
    save(of_texts(HASHED[0][0]).fit(TEXTS, LABELS), tmp_path / "m")
    rewritten(tmp_path / "m", lambda d: d["steps"][0]["params"].update(params))
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


def test_a_step_that_reads_files_is_not_saved(tmp_path):
    (tmp_path / "x").write_text("very ill")
    paths = [str(tmp_path / "x")] * 80
    first = HashingVectorizer(n_features=16, input="filename")
    model = of_texts(first).fit(paths, LABELS)
    with pytest.raises(TypeError, match="step 'hash' must hash texts, not files"):
        save(model, tmp_path / "m")


def test_a_step_without_a_written_form_is_refused_by_name(tmp_path, columns):
    scaler = FrozenEstimator(StandardScaler().fit(columns[0]))
    steps = [("mine", scaler), ("clf", DPLeastSquares(classes=[0, 1]))]
    model = PrivatePipeline(steps, epsilon=1.0).fit(*columns)
    with pytest.raises(TypeError, match="step 'mine' must be of privfeat"):
        save(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_no_seed_is_written(tmp_path, columns):
    model = scaled(random_state=77123).fit(*columns)
    seeds = [step.random_state for _, step in model.steps_]
    save(model, tmp_path / "m")
    text = (tmp_path / "m" / "model.json").read_text()
    assert not any(str(seed) in text for seed in [77123, *seeds])
    assert load(tmp_path / "m").privacy_.seeded


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("steps"),
        lambda d: d.update(steps=[]),
        lambda d: d["steps"].append("x"),
        lambda d: d["steps"].pop(),
        lambda d: d["steps"][0].update(estimator="StandardScaler"),
        lambda d: d["steps"][0].update(estimator="PrivatePipeline"),
        lambda d: d["steps"][0].update(more=1),
        lambda d: d["steps"][0]["fitted"].update(n_features_in_=7),
        lambda d: d["steps"][1]["params"].update(unknown=7),
        lambda d: d["steps"][1]["params"].update(random_state=7),
        lambda d: d["params"].update(random_state=7),
        lambda d: d["params"].update(ledger="x"),
        lambda d: d["params"].update(other="x"),
        lambda d: d["fitted"].update(other=1),
        lambda d: d["privacy"].update(epsilon=0.1),
        lambda d: d.update(estimator="DPLeastSquares"),
    ],
)
def test_what_save_never_writes_is_refused(saved, change):
    rewritten(saved[1], change)
    with pytest.raises(ModelFileError):
        load(saved[1])


def test_load_predictor_returns_none_where_a_step_was_learned(saved):
    assert load_predictor(saved[1]) is None


@pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
def test_a_pipeline_that_ends_in_numbers_has_no_classes(tmp_path, columns):
    X, _ = columns
    last = DPLeastSquaresRegressor(target_bounds=(-9, 9))
    steps = [("scale", DPStandardScaler(bounds=(-9, 9))), ("reg", last)]
    model = PrivatePipeline(steps, epsilon=1.0).fit(X, np.arange(len(X)) % 5 - 2.0)
    save(model, tmp_path / "m")
    found = load(tmp_path / "m")
    assert not hasattr(found, "classes_")
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
