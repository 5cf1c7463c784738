"""What a fitted pipeline predicts of a record follows from that record alone."""

import numpy as np
import pandas as pd
import pytest

from privfeat import DPLeastSquares, PrivatePipeline, PublicColumns
from privfeat.metrics import private_evaluation
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
