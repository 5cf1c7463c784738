"""What a fitted pipeline predicts of a record follows from that record alone."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from privfeat import (
    DPLeastSquares,
    DPRandomizedSearch,
    PrivatePipeline,
    PublicColumns,
    TemperatureScaling,
)
from privfeat.metrics import private_evaluation
from privfeat.selection import private_cross_val_score
from tests.pipeline.conftest import scaled


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_a_prediction_is_alike_beside_any_others(method, columns):
    X, y = columns
    model = scaled().fit(X, y)
    found = getattr(model, method)(X)
    for start, stop in [(0, 1), (5, 1100), (1999, 2000)]:
        part = getattr(model, method)(X[start:stop])
        np.testing.assert_array_equal(part, found[start:stop])


def test_a_pipeline_of_a_table_is_evaluated_privately():
    declared = {
        "age": {"kind": "integer", "bounds": [0, 100]},
        "clinic": {"kind": "category", "categories": ["Bonn", "Kiel"]},
    }
    table = pd.DataFrame({"age": [10, 90] * 300, "clinic": ["Bonn", "Kiel"] * 300})
    steps = [
        ("columns", PublicColumns(declared)),
        ("clf", DPLeastSquares(classes=[0, 1])),
    ]
    model = PrivatePipeline(steps, epsilon=8.0).fit(table, [0, 1] * 300)
    found = private_evaluation(model, table, [0, 1] * 300, epsilon=8.0)
    assert found.accuracy.value > 0.9
    assert not any("one record at a time" in fact for fact in found.privacy.public)


@pytest.fixture
def wards():
    age = np.random.default_rng(0).normal(50.0, 9.0, size=80)
    return pd.DataFrame({"ward": [3, 7] * 40, "age": age}), np.tile([0, 1], 40)


def after_columns_by_name(table, other=None):
    """Return a pipeline whose first step, fitted before, needs names and categories."""
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["ward"]),
        (other or StandardScaler(), ["age"]),
    )
    frozen = FrozenEstimator(columns.fit(table))
    return PrivatePipeline(
        [("columns", frozen), ("clf", DPLeastSquares(classes=[0, 1]))], epsilon=8.0
    )


@pytest.mark.slow
def test_a_pipeline_of_columns_by_name_is_measured(wards):
    """Its first step got an array, which has no names."""
    model = after_columns_by_name(wards[0]).fit(*wards)
    for measured in (model, TemperatureScaling(model, epsilon=8.0).fit(*wards)):
        assert private_evaluation(measured, *wards, epsilon=8.0).accuracy.value > 0.9
    one = model.predict_proba(wards[0][7:8])
    np.testing.assert_array_equal(one, model.predict_proba(wards[0])[7:8])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the scores of a search")
def test_folds_and_searches_take_a_pipeline_of_columns_by_name(wards):
    model = after_columns_by_name(wards[0])
    assert model.planned(2).records == model.fit(*wards).privacy_.releases
    assert private_cross_val_score(model, *wards, epsilon=8.0).accuracy.value > 0.9
    search = DPRandomizedSearch(model, {"clf__ridge": [1.0, 2.0]}, epsilon=8.0)
    assert search.fit(*wards).best_estimator_.score(*wards) > 0.9


def test_a_frozen_step_that_names_nothing_cannot_be_planned(wards):
    model = after_columns_by_name(wards[0], FunctionTransformer(np.log))
    assert model.fit(*wards).score(*wards) > 0.9
    with pytest.raises(ValueError, match="step 'columns' must name what it makes"):
        model.planned(2)
