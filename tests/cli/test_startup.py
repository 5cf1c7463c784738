"""What commands import: what a prediction and a statement wait for."""

import json
import subprocess
import sys

import numpy as np
import pytest

import privfeat
from privfeat import open_features, persistence
from privfeat.persistence.pipelines import read_steps
from privfeat.persistence.saved_models import HOMES

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")
MODELS = {
    "DPFC": {"n_iter": 3},
    "DPFC sigmoid": {"loss": "sigmoid", "n_iter": 3, "learning_rate": 1.0},
    "DPLeastSquares": {},
    "DPLeastSquares class Grams": {"class_gram": True, "alpha": 0.3},
    "DPNewton": {"row_scaling": "clip"},
    "DPAdamLinear": {"n_iter": 3, "center": False},
    "DPNearestMean": {},
}


def modules_after(*lines):
    """Return what a fresh process has imported after commands, which must succeed."""
    code = (
        "import sys\nfrom privfeat.cli import main\n"
        f"assert not any(main(line) for line in {[[*map(str, x)] for x in lines]})\n"
        "print('\\n' + ' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def test_predict_and_statement_import_no_jax(features, model, tmp_path):
    predict = ("predict", "--model", model, "--features", features)
    loaded = modules_after(
        [*predict, "--out", tmp_path / "p.csv"], ["statement", model]
    )
    heavy = {"jax", "sklearn", "dp_accounting", "optax", "scipy.stats", "matplotlib"}
    assert not loaded & heavy
    assert {"numpy", "h5py"} <= loaded


def test_budget_imports_no_jax(tmp_path):
    ledger, named = tmp_path / "a.ledger", ["--dataset", "a"]
    create = ["budget", "create", ledger, *named, "--epsilon", 1, "--delta", 1e-6]
    loaded = modules_after(create, ["budget", "show", ledger])
    assert not loaded & {"jax", "sklearn", "dp_accounting", "scipy.stats"}


def test_plan_imports_neither_jax_nor_dp_accounting():
    sizes = ["--n", 5000, "--d", 8, "--classes", 3, "--epsilon", 1]
    loaded = modules_after(["plan", *sizes])
    assert not loaded & {"jax", "dp_accounting", "optax", "matplotlib"}


@pytest.mark.slow
def test_report_imports_no_estimator(model, tmp_path):
    page, card = tmp_path / "r.html", tmp_path / "r.md"
    loaded = modules_after(["report", model, "--out", page, "--card", card])
    assert not loaded & {"jax", "sklearn", "dp_accounting", "optax", "scipy.stats"}


@pytest.mark.slow
def test_estimators_are_planned_and_loaded_without_jax(model):
    code = (
        "import sys, privfeat; from privfeat.analysis.planning import plan\n"
        f"privfeat.load({model!r}).predict([[0.0] * 5]); plan(10**4, 8, 3, epsilon=1)\n"
        "assert not {'jax', 'optax', 'dp_accounting'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture(scope="module")
def split(features):
    return open_features(features)["train"]


def assert_predicts_the_same(estimator, X, path):
    persistence.save(estimator, path)
    found = persistence.load_predictor(path).predict(X)
    expected = estimator.predict(X)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", MODELS)
def test_a_predictor_predicts_as_its_estimator(name, n_classes, split, tmp_path):
    y = split.y[:] % n_classes
    cls = getattr(privfeat, name.split()[0])
    estimator = cls(epsilon=8, classes=range(n_classes), **MODELS[name])
    assert_predicts_the_same(estimator.fit(split.X, y), split.X, tmp_path / "m")


@pytest.mark.parametrize("name", [name for name in MODELS if name != "DPNearestMean"])
def test_a_predictor_of_several_labels_predicts_the_same(name, split, tmp_path):
    y = np.eye(4, dtype=int)[split.y[:]] + np.eye(4, dtype=int)[(split.y[:] + 1) % 4]
    cls = getattr(privfeat, name.split()[0])
    estimator = cls(epsilon=8, classes=range(4), **MODELS[name]).fit(split.X, y)
    assert_predicts_the_same(estimator, split.X, tmp_path / "m")


@pytest.mark.parametrize("row_scaling", ["unit", "clip"])
@pytest.mark.parametrize("bounds", [None, (-0.5, 2.0)])
def test_a_predictor_of_numbers_predicts_the_same(row_scaling, bounds, split, tmp_path):
    estimator = privfeat.DPLeastSquaresRegressor(
        epsilon=8, row_scaling=row_scaling, target_bounds=bounds
    )
    estimator.fit(split.X, split.y[:])
    assert_predicts_the_same(estimator, split.X, tmp_path / "m")


def test_a_predictor_reads_rows_in_pieces(model, split, plant):
    whole = persistence.load_predictor(model).predict(split.X)
    plant("rows that are predicted at once", 7)
    found = persistence.load_predictor(model).predict(split.X)
    np.testing.assert_array_equal(found, whole)


class Rows:
    """Stands for a feature file."""

    def __init__(self, rows):
        self.rows, self.shape = rows, rows.shape

    def __len__(self):
        return len(self.rows)

    def read(self, start, stop):
        return self.rows[start:stop]


def test_a_predictor_refuses_other_rows(model):
    predictor = persistence.load_predictor(model)
    message = "X has 4 features, but DPLeastSquares is expecting 5 features as input"
    with pytest.raises(ValueError, match=message):
        predictor.predict(Rows(np.ones((3, 4), np.float32)))
    with pytest.raises(ValueError, match="must not contain NaN"):
        predictor.predict(Rows(np.full((3, 5), np.nan, np.float32)))


@pytest.mark.parametrize("name", [name for names in HOMES.values() for name in names])
def test_estimators_that_have_no_classes_are_regressors(name):
    from privfeat.persistence.saved_models import _REGRESSORS

    if name in HOMES["privfeat.preprocessing"]:
        return
    assert hasattr(getattr(privfeat, name), "predict_proba") != (name in _REGRESSORS)


@pytest.mark.parametrize("name", HOMES["privfeat.linear"])
def test_parameters_of_saved_models_are_those_of_their_estimators(name):
    from privfeat.persistence.saved_models import PARAMETERS

    known = getattr(privfeat, name)().get_params(deep=False)
    assert sorted(PARAMETERS[name].split()) == sorted(known)


@pytest.mark.parametrize(
    "planted",
    [
        {"row_scaling": "none"},
        {"loss": "hinge"},
        {"target_bounds": [1]},
        {"alpha": -1},
        {"loss": "softmax"},  # of another estimator
        {"__class__": "x"},
    ],
)
def test_a_predictor_refuses_parameters_that_no_fit_takes(planted, model, tmp_path):
    from dataclasses import replace

    from privfeat.persistence.saved_models import predictor_of

    (saved,) = read_steps(model).values()
    wrong = replace(saved, params=saved.params | planted)
    with pytest.raises(persistence.ModelFileError, match="parameters do not fit"):
        predictor_of(tmp_path, wrong)


def test_a_predictor_is_refused_with_a_statement_that_promises_too_much(
    model, tmp_path
):
    from privfeat.persistence.model_folder import digest

    path = tmp_path / "m"
    persistence.save(persistence.load(model), path)
    document = json.loads((path / "model.json").read_text())
    document["privacy"]["epsilon"] /= 2
    document["sha256"] = digest(document)
    (path / "model.json").write_text(json.dumps(document))
    with pytest.raises(persistence.ModelFileError, match="promises more"):
        persistence.load_predictor(path)


@pytest.mark.parametrize("wrong", [{"bogus": 1}, {"row_scaling": "odd"}])
def test_a_predictor_refuses_parameters_of_no_estimator(model, tmp_path, wrong):
    from privfeat.persistence.model_folder import digest

    path = tmp_path / "m"
    persistence.save(persistence.load(model), path)
    document = json.loads((path / "model.json").read_text())
    document["params"] |= wrong
    document["sha256"] = digest(document)
    (path / "model.json").write_text(json.dumps(document))
    with pytest.raises(persistence.ModelFileError, match="do not fit the estimator"):
        persistence.load_predictor(path)
