"""Frames whose columns stand in another order than that of the declaration."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from privfeat import DPLeastSquares, PublicColumns, TemperatureScaling
from privfeat.metrics import private_evaluation


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_columns_of_a_frame_may_stand_in_any_order(declared_columns):
    """A pipeline reads an array by the declaration, and a frame by its names."""
    model, frame, y = declared_columns
    found = private_evaluation(model, frame, y, random_state=0, epsilon=8.0)
    assert found.accuracy.value > 0.9
    assert TemperatureScaling(model, public=True).fit(frame, y).temperature_ < 1.0


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
    model = make_pipeline(PublicColumns(declared), DPLeastSquares(**options))
    return model.fit(frame, y), frame, y
