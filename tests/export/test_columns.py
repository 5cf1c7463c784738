"""Declared columns inside of a graph become what PublicColumns makes of them."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from privfeat import PublicColumns, TemperatureScaling
from privfeat.export import export_onnx
from tests.export.conftest import ALWAYS, NUMBER, fitted

onnx = pytest.importorskip("onnx", reason="pip install 'privfeat[onnx]'")
ort = pytest.importorskip("onnxruntime", reason="pip install 'privfeat[dev]'")

# Of one column: what is declared, values, and how they are given to the graph.
ALLOWED = {
    "scaled": (NUMBER, [10.0, 12.5, 70.0, -np.inf], None),
    "neutral": (NUMBER | {"missing": "neutral"}, [np.nan, 20.0, 50.0], None),
    "constant": (NUMBER | {"missing": 15}, [np.nan, 20.0, 50.0], None),
    "indicator": (NUMBER | {"missing": "indicator"}, [np.nan, 20.0], None),
    "marks": (
        NUMBER | {"missing": "indicator", "missing_values": [-9, 99, "none"]},
        [-9.0, 99.0, 20.0, np.nan],
        None,
    ),
    "log": (NUMBER | {"treatment": "log"}, [10.0, 3.0, 22.5, np.inf], None),
    "log, neutral": (
        NUMBER | {"treatment": "log", "missing": "neutral"},
        [np.nan, 22.5],
        None,
    ),
    "log, constant": (
        NUMBER | {"treatment": "log", "missing": 20},
        [np.nan, 22.5],
        None,
    ),
    "raw": (NUMBER | {"treatment": "raw", "missing": "neutral"}, [np.nan, 7.0], None),
    "raw, constant": (NUMBER | {"treatment": "raw", "missing": 11}, [np.nan], None),
    "integer": (
        {"kind": "integer", "bounds": [0, 9], "missing": "neutral"},
        [3.0, 200.0, np.inf, np.nan],
        None,
    ),
    "boolean": (
        {"kind": "boolean", "missing": "indicator"},
        [True, False, None],
        [1.0, 0.0, np.nan],
    ),
    "boolean, constant": (
        {"kind": "boolean", "missing": True, "missing_values": [9]},
        [False, None, 9],
        [0.0, np.nan, 9.0],
    ),
    "category": (
        {"kind": "category", "categories": ["Bonn", "Kiel", 3]},
        ["Kiel", "Bonn", 3.0],
        ["Kiel", "Bonn", "3"],
    ),
    "category, neutral": (
        {"kind": "category", "categories": ["a", "b"], "unseen": "neutral"}
        | {"missing": "neutral", "missing_values": ["none"]},
        ["a", "other", None, "none"],
        ["a", "other", "", "none"],
    ),
    "category, other": (
        {"kind": "category", "categories": ["a", "b"], "unseen": "b", "missing": "a"},
        ["a", "other", None],
        ["a", "other", ""],
    ),
    "category, indicator": (
        {"kind": "category", "categories": ["a", "b"], "missing": "indicator"},
        ["a", "b", None],
        ["a", "b", ""],
    ),
    "date": (
        {"kind": "date", "bounds": ["2000-01-01", "2030-01-01"], "missing": "neutral"}
        | {"missing_values": [0, "1990-01-01"]},
        ["2014-05-01", "1990-01-01", "2014-05-01T08:00+02:00", "1970-01-01", None],
        [1398902400.0, 631152000.0, 1398924000.0, 0.0, np.nan],
    ),
}
# And values that are refused.
REFUSED = {
    "missing number": (NUMBER, np.nan),
    "marked number": (NUMBER | {"missing_values": [-9]}, -9.0),
    "fraction": ({"kind": "integer", "bounds": [0, 9]}, 2.5),
    "boolean": ({"kind": "boolean"}, 0.5),
    "missing boolean": ({"kind": "boolean"}, np.nan),
    "missing date": ({"kind": "date", "bounds": ["2000-01-01", "2030-01-01"]}, np.nan),
    "category": ({"kind": "category", "categories": ["a", "b"]}, "c"),
    "missing category": ({"kind": "category", "categories": ["a", "b"]}, ""),
}


def session_of(pipeline, path):
    export_onnx(pipeline, path)
    options = ort.SessionOptions()
    options.log_severity_level = 4  # refused rows are meant
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def as_input(values):
    kind = object if isinstance(values[0], str) else np.float64
    return {
        "column": np.array(values, kind)[:, None],
        "always": np.linspace(-1, 1, len(values))[:, None],
    }


@pytest.mark.parametrize("name", ALLOWED)
def test_graph_makes_of_values_what_their_declaration_says(name, tmp_path):
    declared, values, given = ALLOWED[name]
    inputs = as_input(values if given is None else given)
    always = inputs["always"][:, 0]
    frame = pd.DataFrame({"column": pd.Series(values, dtype=object), "always": always})
    pipeline = fitted(declared)
    label, probabilities, _ = session_of(pipeline, tmp_path / "m.onnx").run(
        None, inputs
    )
    expected = pipeline.predict_proba(frame)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(label, pipeline.predict(frame))


@pytest.mark.parametrize("name", REFUSED)
def test_graph_fails_for_values_that_are_not_allowed(name, tmp_path):
    declared, value = REFUSED[name]
    session = session_of(fitted(declared), tmp_path / "m.onnx")
    with pytest.raises(Exception, match="out of data bounds"):
        session.run(None, as_input([value]))


def test_graph_has_no_input_for_ignored_columns(tmp_path):
    pipeline = fitted(NUMBER)
    pipeline[0].columns |= {"note": {"kind": "ignored"}}
    session = session_of(pipeline, tmp_path / "m.onnx")
    assert [given.name for given in session.get_inputs()] == ["column", "always"]


def test_metadata_holds_the_declaration(tmp_path):
    export_onnx(fitted(NUMBER), tmp_path / "m.onnx")
    found = {p.key: p.value for p in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert found["estimator"] == "PublicColumns, DPLeastSquares"
    assert json.loads(found["columns"]) == {"column": NUMBER, **ALWAYS}


def test_graph_refuses_a_column_with_the_name_of_an_output(tmp_path):
    pipeline = fitted(NUMBER)
    pipeline[0].columns = {"label": NUMBER, **ALWAYS}
    with pytest.raises(ValueError, match="must not be named label"):
        export_onnx(pipeline, tmp_path / "m.onnx")


def test_graph_refuses_other_steps(tmp_path):
    columns, clf = (step for _, step in fitted(NUMBER).steps)
    inner = PublicColumns({"a": NUMBER, "b": NUMBER})
    with pytest.raises(TypeError, match="got PublicColumns"):
        export_onnx(make_pipeline(columns, inner, clf), tmp_path / "m.onnx")


def test_graph_of_a_scaled_pipeline_predicts_as_it_does(tmp_path):
    pipeline = fitted(NUMBER)
    X = np.column_stack([np.linspace(5, 60, 30), np.linspace(-1, 1, 30)])
    y = np.where(X[:, 1] > 0.2, "yes", "no")
    scaled = TemperatureScaling(pipeline, public=True).fit(X, y)
    assert scaled.temperature_ != 1.0
    inputs = {"column": X[:, :1], "always": X[:, 1:]}
    session = session_of(scaled, tmp_path / "m.onnx")
    (found,) = session.run(["probabilities"], inputs)
    np.testing.assert_allclose(found, scaled.predict_proba(X), rtol=1e-12)
