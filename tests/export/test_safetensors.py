"""Arrays of a model in a file of safetensors, with what predictions need."""

import json

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from privfeat import (
    DPFC,
    DPLeastSquares,
    DPLeastSquaresRegressor,
    PublicColumns,
    TemperatureScaling,
)
from privfeat._types import STAYS_AT_HOME
from privfeat.core.statement.privacy_statement import PrivacyStatement
from privfeat.exceptions import PrivacyWarning
from privfeat.export import export_safetensors

safetensors = pytest.importorskip(
    "safetensors", reason="pip install 'privfeat[safetensors]'"
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def read(path):
    """Return arrays and metadata."""
    with safetensors.safe_open(path, framework="np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()


def test_file_holds_the_arrays_of_the_model(fit, path):
    model = fit(DPFC)
    export_safetensors(model, path)
    arrays, _ = read(path)
    assert {*arrays} == {"coef_", "intercept_", "center_"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, getattr(model, name), strict=True)


def test_metadata_holds_the_statement_and_what_predictions_need(fit, path):
    model = fit(DPLeastSquares, names=["a", "b", "c"])
    export_safetensors(model, path, class_names=["ant", "bee", "cat"])
    _, found = read(path)
    assert {*found} == {
        *("privfeat_version", "estimator", "privacy", "class_names"),
        *("prediction", "classes"),
    }
    assert PrivacyStatement.from_json(found["privacy"]) == model.privacy_
    assert json.loads(found["classes"]) == ["a", "b", "c"]
    needed = {"row_scaling": "unit", "loss": "squared"}
    needed |= {"multilabel": False, "negative_weight": None}
    assert json.loads(found["prediction"]) == needed
    assert not {*found} & {*STAYS_AT_HOME}


def test_metadata_says_that_a_record_has_several_labels(rows, path):
    y = np.random.default_rng(1).integers(2, size=(len(rows), 3))
    export_safetensors(DPFC(epsilon=5.0, classes=range(3)).fit(rows, y), path)
    assert json.loads(read(path)[1]["prediction"])["multilabel"] is True


def test_metadata_holds_the_bounds_of_a_regressor(rows, path):
    model = DPLeastSquaresRegressor(epsilon=1.0, target_bounds=(-3, 9))
    export_safetensors(model.fit(rows, np.clip(rows[:, 0], -2, 8)), path)
    arrays, found = read(path)
    assert {*arrays} == {"coef_", "intercept_", "center_", "moments_"}
    assert json.loads(found["prediction"])["bounds"] == [-3.0, 9.0]
    assert "classes" not in found


@pytest.mark.slow
def test_file_holds_the_parameters_of_a_network(path):
    pytest.importorskip("flax", reason="pip install 'privfeat[train]'")
    from tests.export.conftest import tiny_network

    model = tiny_network()
    export_safetensors(model, path)
    arrays, found = read(path)
    for name, leaf in model.parameters_.items():
        np.testing.assert_array_equal(arrays[f"parameters_/{name}"], leaf, strict=True)
    assert arrays["input_shape_"].tolist() == [3]
    assert json.loads(found["prediction"])["model"] == "mlp"
    model.model = object()
    with pytest.raises(TypeError, match="model must be made of"):
        export_safetensors(model, path)


def test_file_holds_no_seed(fit, path):
    with pytest.warns(match="random_state"):
        model = fit(DPFC, random_state=987654321)
    with pytest.warns(PrivacyWarning, match="a model that leaves .* seeded=True"):
        export_safetensors(model, path)
    assert b"987654321" not in path.read_bytes()


def test_export_safetensors_refuses_what_is_more_than_one_estimator(fit, rows, path):
    clf = fit(DPFC)
    columns = {f"x{i}": {"kind": "numeric", "bounds": [-1, 1]} for i in range(4)}
    scaled = TemperatureScaling(clf, public=True).fit(rows, np.arange(len(rows)) % 3)
    for model in (make_pipeline(PublicColumns(columns), clf), scaled):
        with pytest.raises(TypeError, match="must be one estimator"):
            export_safetensors(model, path)
    assert not path.exists()
