"""Frames whose columns stand in another order than that of the declaration."""

import math

import numpy as np
import pandas as pd
import pyarrow
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from privfeat import (
    ConformalClassifier,
    DPLeastSquares,
    DPRandomizedSearch,
    HashKFold,
    PrivatePipeline,
    PublicColumns,
    TemperatureScaling,
)
from privfeat.metrics import private_evaluation
from privfeat.metrics.predictions import rows_of
from privfeat.selection import private_cross_val_score


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_columns_of_a_frame_may_stand_in_any_order(declared_columns):
    """A pipeline reads an array by the declaration, and a frame by its names."""
    model, frame, y = declared_columns
    found = private_evaluation(model, frame, y, random_state=0, epsilon=8.0)
    assert found.accuracy.value > 0.9
    assert TemperatureScaling(model, public=True).fit(frame, y).temperature_ < 1.0
    other = private_evaluation(model, frame[["a", "b"]], y, random_state=0, epsilon=8.0)
    assert other.accuracy == found.accuracy


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_a_table_may_lack_ignored_columns_and_no_others(declared_columns):
    model, frame, y = declared_columns
    model[0].columns["c"] = {"kind": "ignored"}
    model.fit(frame.assign(c="note"), y)
    whole = private_evaluation(
        model, frame.assign(c="note"), y, random_state=0, epsilon=8.0
    )
    found = private_evaluation(model, frame, y, random_state=0, epsilon=8.0)
    assert found.accuracy == whole.accuracy
    with pytest.raises(ValueError, match="must have column 'a' once"):
        private_evaluation(model, frame[["b"]], y, epsilon=8.0)


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
@pytest.mark.parametrize("around", [TemperatureScaling, ConformalClassifier])
def test_a_calibrated_model_refuses_columns_in_another_order(around):
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(draw.normal(size=(400, 2)), columns=["a", "b"])
    y = (frame["a"] > 0).astype(int)
    model = DPLeastSquares(classes=[0, 1], epsilon=math.inf).fit(frame, y)
    calibrated = around(model, epsilon=9.0).fit(frame, y)
    swapped = frame[["b", "a"]]
    for measure in (
        lambda: private_evaluation(calibrated, swapped, y, epsilon=8.0),
        lambda: TemperatureScaling(calibrated, public=True).fit(swapped, y),
    ):
        with pytest.raises(ValueError, match="same order"):
            measure()
    found = private_evaluation(calibrated, frame, y, random_state=0, epsilon=8.0)
    assert found.accuracy.value > 0.9


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_large_codes_are_measured_as_they_are_predicted():
    """float64 makes one of two codes of 18 digits."""
    codes = [900000000000207008, 900000000000207009]
    y = np.arange(400) % 2
    texts = np.array([str(code) for code in codes])[y]  # as dtype=str reads them
    table = pd.DataFrame({"code": texts, "age": np.full(400, 0.5)})
    declared = {
        "code": {"kind": "category", "categories": codes},
        "age": {"kind": "numeric", "bounds": [0, 1]},
    }
    steps = [("columns", PublicColumns(declared))]
    steps += [("last", DPLeastSquares(classes=[0, 1], row_scaling="clip"))]
    model = PrivatePipeline(steps, epsilon=math.inf).fit(table, y)
    assert np.array_equal(model.predict(table), y)
    found = private_evaluation(model, table, y, random_state=0, epsilon=8.0)
    assert found.accuracy.value > 0.9


class Written(ClassifierMixin, BaseEstimator):
    """A model that reads numbers as texts; for it "2" and "2.0" are different."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0].astype(str) == "2.0").astype(int)


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("gap", [2, 2.5, None, np.nan])
def test_one_record_does_not_change_how_a_model_sees_the_others(gap):
    """One half, or gap, makes floats of the whole numbers of a column."""
    plain = pd.DataFrame({"a": [2] * 400, "b": [7] * 400})
    model = Written().fit(None, [0, 1])
    last = pd.DataFrame({"a": [gap], "b": [7]})
    for table in (plain, pd.concat([plain, last], ignore_index=True)):
        lists = table.to_numpy().tolist(), [row for _, row in table.iterrows()]
        for X in (table, np.asarray(table), np.asarray(table, object), *lists):
            y = np.ones(len(X), int)
            found = private_evaluation(model, X, y, random_state=0, epsilon=8.0)
            assert found.accuracy.value > 0.9


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
@pytest.mark.parametrize("gap", [False, True])
def test_a_model_whose_parts_read_names_gets_rows_of_the_table(declared_columns, gap):
    """Each of types that follow from itself: one gap elsewhere changes none."""
    model, frame, y = declared_columns
    frame = frame.assign(kind=np.where(y, 3, 7), n=2)
    encoder = OneHotEncoder(handle_unknown="ignore")
    parts = [("declared", model[0], ["b", "a"]), ("other", encoder, ["kind", "n"])]
    outer = make_pipeline(ColumnTransformer(parts), LogisticRegression()).fit(frame, y)
    tested = frame.assign(n=frame["n"].mask(np.arange(400) == 7)) if gap else frame
    found = private_evaluation(outer, tested, y, random_state=0, epsilon=8.0)
    assert found.accuracy.value > 0.9
    scaled = TemperatureScaling(outer, public=True).fit(tested, y)
    assert np.array_equal(scaled.predict(frame), y)


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


@pytest.mark.slow
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


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_a_type_that_a_fit_refuses_is_not_measured():
    """pandas makes float32 of a column unless one record has more digits."""
    declared = {
        "age": {"kind": "numeric", "bounds": [0, 1], "missing_values": [-99.9]},
        "other": {"kind": "numeric", "bounds": [0, 1]},
    }
    declared["age"]["missing"] = "neutral"
    steps = [("columns", PublicColumns(declared))]
    steps += [("last", DPLeastSquares(classes=[0, 1], row_scaling="clip"))]
    table = pd.DataFrame({"age": np.full(40, 0.5), "other": np.full(40, 0.25)})
    y = np.arange(40) % 2
    model = PrivatePipeline(steps, epsilon=math.inf).fit(table, y)
    private_evaluation(model, table, y, epsilon=8.0)
    rounded = table.astype({"age": np.float32})
    with pytest.raises(TypeError, match="readable as arrays"):
        private_evaluation(model, rounded, y, epsilon=8.0)
    with pytest.raises(TypeError, match="names of text"):
        private_evaluation(model, table.set_axis([0, 1], axis=1), y, epsilon=8.0)


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_what_makes_an_array_of_a_table_gets_numbers_alone(declared_columns):
    """Of float32 it makes float64, which is no declared 0.1; a word keeps the type."""
    model, frame, y = declared_columns
    bagged = BaggingClassifier(model, n_estimators=1).fit(frame, y)
    assert rows_of(bagged, frame.astype(np.float32)).dtypes.eq(np.float64).all()
    for named in (bagged, GridSearchCV(model, {}), FrozenEstimator(model)):
        handed_on = named is not bagged
        texts = frame.astype(str)
        if handed_on:
            assert rows_of(named, texts) is texts
            continue
        with pytest.raises(TypeError, match="one word makes texts"):
            rows_of(named, texts)
