"""Frames whose columns stand in another order than that of the declaration."""

import math

import numpy as np
import pandas as pd
import pyarrow
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline

from privfeat import (
    DPLeastSquares,
    DPRandomizedSearch,
    HashKFold,
    PrivatePipeline,
    PublicColumns,
    TemperatureScaling,
)
from privfeat.metrics import private_evaluation
from privfeat.selection import private_cross_val_score


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_columns_of_a_frame_may_stand_in_any_order(declared_columns):
    """A pipeline reads an array by the declaration, and a frame by its names."""
    model, frame, y = declared_columns
    found = private_evaluation(model, frame, y, random_state=0, epsilon=8.0)
    assert found.accuracy.value > 0.9
    assert TemperatureScaling(model, public=True).fit(frame, y).temperature_ < 1.0


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
@pytest.mark.parametrize(
    "around",
    [
        lambda model: GridSearchCV(model, {"last__ridge": [1.0]}, cv=HashKFold(2)),
        lambda model: OneVsRestClassifier(model),
        lambda model: DPRandomizedSearch(
            PrivatePipeline(model.steps).set_params(last__epsilon=None),
            {"last__ridge": [1.0]},
            epsilon=math.inf,
        ),
    ],
    ids=["search", "one against others", "private search"],
)
def test_columns_may_stand_in_any_order_whatever_is_around_a_pipeline(
    declared_columns, around
):
    model, frame, y = declared_columns
    outer = around(model.set_params(last__epsilon=math.inf)).fit(frame, y)
    found = private_evaluation(outer, frame, y, random_state=0, epsilon=8.0)
    assert found.accuracy.value > 0.9


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_a_table_for_a_model_that_reads_names_later_on_is_refused(declared_columns):
    """Its parts would read an array in an order of their own."""
    model, frame, y = declared_columns
    parts = ColumnTransformer([("declared", model[0], ["b", "a"])])
    outer = make_pipeline(parts, clone(model[1])).fit(frame, y)
    with pytest.raises(TypeError, match="PublicColumns as its first step"):
        private_evaluation(outer, frame, y, epsilon=8.0)


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_tables_of_arrow_are_read_by_names_in_folds_and_searches(declared_columns):
    model, frame, y = declared_columns
    pipeline = PrivatePipeline(model.steps)
    table = pyarrow.Table.from_pandas(frame)
    found = private_cross_val_score(
        pipeline.set_params(last__epsilon=None), table, y, n_splits=2, epsilon=math.inf
    )
    assert found.accuracy.value > 0.9
    search = DPRandomizedSearch(pipeline, {"last__ridge": [1.0]}, epsilon=math.inf)
    assert search.fit(table, y).score(frame, y) > 0.9


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
@pytest.mark.parametrize("kept", [True, False])
def test_a_table_needs_no_column_that_is_ignored(declared_columns, kept):
    """As in `predict`: whether the table has it or not, the figures are the same."""
    model, frame, y = declared_columns
    columns = model[0].columns | {"name": {"kind": "ignored"}}
    told = make_pipeline(PublicColumns(columns), model[-1])
    table = frame.assign(name="Ann") if kept else frame
    noise = {"random_state": 0, "epsilon": 8.0}
    found = private_evaluation(told, table, y, **noise)
    assert found.accuracy == private_evaluation(model, frame, y, **noise).accuracy


@pytest.fixture
def declared_columns():
    """A pipeline of declared columns, a frame of them in another order, and labels."""
    y = np.arange(400) % 2
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"b": 3.0 * draw.normal(size=400), "a": 4.0 * y - 2.0 + draw.normal(size=400)}
    )
    declared = {name: {"kind": "numeric", "bounds": [-4, 4]} for name in "ab"}
    options = {
        "classes": [0, 1],
        "row_scaling": "clip",
        "clip_norm": 1.0,
        "epsilon": math.inf,
    }
    steps = [("columns", PublicColumns(declared)), ("last", DPLeastSquares(**options))]
    model = Pipeline(steps)
    return model.fit(frame, y), frame, y
