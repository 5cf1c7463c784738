"""The part of a model that commands read: without JAX, and with the same refusals."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

from privfeat import load, save
from privfeat.estimation.predictor import scaled_rows
from privfeat.persistence import ModelFileError, load_predictor
from privfeat.persistence.loading import load_table
from privfeat.persistence.model_checks import as_table
from privfeat.preprocessing import DPStandardScaler
from tests.persistence.conftest import make_data, rewrite, rewrite_arrays

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


def test_sparse_rows_are_not_centred():
    rows = csr_array(np.eye(3))
    found = scaled_rows(rows, np.zeros(3), "clip")
    assert found is rows
    with pytest.raises(TypeError, match="sparse"):
        scaled_rows(rows, np.ones(3), "clip")


def test_rows_of_another_width_are_refused(folder):
    with pytest.raises(ValueError, match="X has 99 features, but"):
        load_predictor(folder).predict(np.zeros((2, 99)))


@pytest.mark.parametrize("change", ["unknown", "wrong"])
def test_planted_parameters_are_refused(folder, change):
    estimator = json.loads((folder / "model.json").read_text())["params"]
    more = {"walk": 1} if change == "unknown" else {"row_scaling": 3}
    rewrite(folder, params=estimator | more)
    with pytest.raises(ModelFileError, match="do not fit the estimator"):
        load_predictor(folder)


def test_a_table_that_declares_nothing_is_refused(folder):
    rewrite(folder, table={"columns": {}})
    with pytest.raises(ModelFileError, match="it declares no columns of a table"):
        load_table(folder)


def test_a_step_of_preprocessing_predicts_nothing(tmp_path):
    X, _ = make_data([0, 1, 2])
    save(DPStandardScaler(bounds=(-9, 9), random_state=0).fit(X), tmp_path / "step")
    with pytest.raises(ModelFileError, match="must hold a model that predicts"):
        load_predictor(tmp_path / "step")


def test_a_step_that_would_divide_by_nothing_is_refused(tmp_path):
    X, _ = make_data([0, 1, 2])
    step = DPStandardScaler(bounds=(-9, 9), random_state=0).fit(X)
    save(step, tmp_path / "step")
    rewrite_arrays(tmp_path / "step", scale_=np.zeros_like(step.scale_))
    with pytest.raises(ModelFileError, match="scale_ is not above 0"):
        load(tmp_path / "step")


def test_a_table_has_columns_and_a_target():
    with pytest.raises(TypeError, match="must be a mapping with columns and target"):
        as_table({"columns": {}})
    number = {"kind": "numeric", "bounds": [0, 1]}
    with pytest.raises(ValueError, match="target of table must be one of its columns"):
        as_table({"columns": {"age": number}, "target": "ill"})
