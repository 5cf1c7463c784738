"""Files of every version that was ever written keep loading: one of each is here."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import privfeat
from privfeat.core.ledger.rows import VERSION as LEDGER_VERSION
from privfeat.core.statement.serialization import STATEMENT_VERSION
from privfeat.data.schema import FORMAT_VERSION as FEATURES_VERSION
from privfeat.metrics.files import FORMAT_VERSION as EVALUATION_VERSION
from privfeat.metrics.files import load_evaluation
from privfeat.persistence.model_folder import FORMAT_VERSION as MODEL_VERSION
from tests.old_models import MODELS, NAMES, results

GOLDEN = Path(__file__).parent / "golden"


def test_there_is_a_file_of_every_version():
    models = {path.name for path in GOLDEN.glob("model-v*") if path.is_dir()}
    assert models == {f"model-v{v}" for v in range(1, MODEL_VERSION + 1)}
    features = {path.name for path in GOLDEN.glob("features-v*.h5")}
    assert features == {f"features-v{v}.h5" for v in range(1, FEATURES_VERSION + 1)}
    ledgers = {path.stem for path in GOLDEN.glob("ledger-v*")}
    assert ledgers == {f"ledger-v{v}" for v in range(1, LEDGER_VERSION + 1)}
    # the two below are of version 1; another one needs its file here first
    assert (STATEMENT_VERSION, EVALUATION_VERSION) == (1, 1)


def test_there_is_a_model_of_every_kind():
    assert {path.name for path in MODELS.iterdir()} == {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_models_of_every_kind_load_and_give_what_they_gave(name):
    model = privfeat.load(MODELS / name)
    with np.load(MODELS / name / "then.npz") as then:
        found = results(model, then.get("rows"))
        np.testing.assert_allclose(found, then["results"], rtol=1e-5, atol=1e-7)
    assert type(model).__name__ == name
    assert model.privacy_.seeded


def test_a_scaler_that_was_fitted_without_bounds_gives_what_it_gave(tmp_path):
    """They had a default once; without them none is fitted any more."""
    folder = GOLDEN / "scaler-without-bounds"
    model = privfeat.load(folder)
    assert model.steps[0][1].bounds is None
    with np.load(folder / "then.npz") as then:
        rows, expected = then["rows"], then["results"]
    np.testing.assert_allclose(results(model, rows), expected, rtol=1e-5)
    privfeat.save(model, tmp_path / "again")
    again = privfeat.load(tmp_path / "again")
    np.testing.assert_array_equal(results(again, rows), results(model, rows))
    evaluation = privfeat.metrics.private_evaluation(model, rows, np.arange(9) % 2)
    assert evaluation.accuracy is not None
    with pytest.raises(ValueError, match="bounds must be the least and the greatest"):
        model.fit(rows, np.arange(9) % 2)


def test_statement_of_version_1_keeps_all_that_it_said():
    text = (GOLDEN / "statement-v1.json").read_text(encoding="utf-8")
    found = privfeat.PrivacyStatement.from_json(text)
    then, now = json.loads(text), json.loads(found.to_json())
    assert {key: now[key] for key in then} == then


def test_evaluation_of_version_1_loads():
    found, test = load_evaluation(MODELS / "DPFC")
    document = json.loads((MODELS / "DPFC" / "evaluation.json").read_text("utf-8"))
    assert found.accuracy.value == document["figures"]["accuracy"]["value"]
    assert (found.privacy.version, test) == ("1.0.0", "others.csv")


@pytest.mark.parametrize("version", range(1, MODEL_VERSION + 1))
def test_models_of_every_version_load_and_predict_as_then(version, tmp_path):
    folder = shutil.copytree(GOLDEN / f"model-v{version}", tmp_path / "model")
    clf = privfeat.load(folder)
    assert (clf.privacy_.epsilon, clf.privacy_.delta) == (1.0, 1e-5)
    assert clf.privacy_.seeded
    with np.load(GOLDEN / f"model-v{version}-predictions.npz") as then:
        scores = clf.decision_function(then["X"])
        np.testing.assert_allclose(scores, then["scores"], rtol=1e-12)


@pytest.mark.parametrize("version", range(1, FEATURES_VERSION + 1))
def test_feature_files_of_every_version_load(version):
    with privfeat.open_features(GOLDEN / f"features-v{version}.h5") as file:
        file.verify()
        train = file["train"]
        expected = np.arange(12).reshape(6, 2) / 4
        np.testing.assert_array_equal(np.asarray(train.X), expected)
        np.testing.assert_array_equal(train.y, [0, 1, 2, 0, 1, 2])
        assert train.class_names == ("a", "b", "c")


@pytest.mark.parametrize("version", range(1, LEDGER_VERSION + 1))
def test_ledgers_of_every_version_hold_what_was_charged(version, tmp_path):
    (then,) = GOLDEN.glob(f"ledger-v{version}.*")
    path = shutil.copy(then, tmp_path)
    ledger = privfeat.PrivacyLedger(path, dataset="a")
    assert (ledger.budget.epsilon, ledger.budget.delta) == (3.0, 1e-5)
    first, second = ledger.history
    assert (first.estimator, second.estimator) == ("DPFC", "DPSGDClassifier")
    assert first.fitted
    assert second.fitted is None
    assert first.statement.epsilon == 0.5
    assert second.statement.epsilon == pytest.approx(1.0, rel=1e-4)
    assert 1.0 < ledger.spent.epsilon < 1.5
    assert ledger.charge(first.statement, estimator="DPFC") == 3
