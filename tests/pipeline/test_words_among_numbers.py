"""One record with a word makes texts of all numbers of a column, read by a step."""

import math
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction import FeatureHasher
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from privfeat import (
    DPLeastSquares,
    DPRandomizedSearch,
    PrivatePipeline,
    TemperatureScaling,
)
from privfeat.metrics import private_evaluation
from privfeat.recalibration import ConformalClassifier
from privfeat.selection import private_cross_val_score

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")

WARDS = ["1", "2", "3"] * 60
Y = np.array([ward == "1" for ward in WARDS], int)
ENCODER = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
LAST = DPLeastSquares(classes=[0, 1], row_scaling="clip", center=False)


def read(*wards, **options):
    return pd.read_csv(StringIO("\n".join(["ward", *wards])), **options)


def pipeline_of(first, **budget):
    return PrivatePipeline([("first", first), ("clf", LAST)], **budget)


def trained(table):
    return make_pipeline(ENCODER, LogisticRegression()).fit(table, Y)


def encoded(table, **budget):
    return pipeline_of(FrozenEstimator(ENCODER.fit(table)), **budget)


def hashed(**budget):
    return pipeline_of(FeatureHasher(8), **budget)


USES = {
    "fit": lambda X, y, table: encoded(table, epsilon=math.inf).fit(X, y),
    "mappings": lambda X, y, table: hashed(epsilon=1.0).fit(X.to_dict("records"), y),
    "list": lambda X, y, table: encoded(table, epsilon=1.0).fit(X.values.tolist(), y),
    "folds": lambda X, y, table: private_cross_val_score(
        encoded(table), X, y, n_splits=2, epsilon=math.inf
    ),
    "mappings in folds": lambda X, y, table: private_cross_val_score(
        hashed(), X.to_dict("records"), y, n_splits=2, epsilon=math.inf
    ),
    "search": lambda X, y, table: DPRandomizedSearch(
        encoded(table), {"clf__ridge": [1.0]}, epsilon=math.inf
    ).fit(X, y),
    "measured": lambda X, y, table: private_evaluation(trained(table), X, y, epsilon=8),
    "array": lambda X, y, table: private_evaluation(
        trained(table.to_numpy()), X.to_numpy(), y, epsilon=8
    ),
    "pipeline measured": lambda X, y, table: private_evaluation(
        encoded(table, epsilon=math.inf).fit(table, Y), X, y, epsilon=8
    ),
    "scaled": lambda X, y, table: TemperatureScaling(trained(table), epsilon=8).fit(
        X, y
    ),
    "scaled measured": lambda X, y, table: private_evaluation(
        TemperatureScaling(trained(table), epsilon=8).fit(table, Y), X, y, epsilon=8
    ),
    "conformal": lambda X, y, table: ConformalClassifier(trained(table), epsilon=8).fit(
        X, y
    ),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_texts_that_one_word_made_of_numbers_are_refused(use):
    table, beside = read(*WARDS), read(*WARDS, "ICU")
    with pytest.raises(TypeError, match="must hold numbers, and texts that do not"):
        use(beside, [*Y, 0], table)
    use(table, Y, table)


READ = {
    "asked for": lambda *wards: read(*wards, dtype="string"),
    "guessed": lambda *wards: read(*wards).convert_dtypes(),
    "made later": lambda *wards: read(*wards).astype("string"),
    "truth": lambda *wards: read(*wards, true_values=["1"], false_values=["2", "3"]),
    "dates": lambda *wards: read(*[f"2020-01-0{w}" for w in wards], parse_dates=[0]),
}


@pytest.mark.parametrize("how", ["fit", "folds", "measured", "conformal"])
@pytest.mark.parametrize("form", READ.values(), ids=READ)
def test_no_way_to_read_lets_a_word_decide_what_others_are(how, form):
    """One of the two tables is refused, however they are read."""
    public = form(*WARDS[:3]).sample(180, replace=True, random_state=0)
    tables = [(form(*WARDS), Y), (form(*WARDS, "ICU"), [*Y, 0])]

    def use_both():
        for X, y in tables:
            USES[how](X, y, public)

    with pytest.raises(TypeError, match="must hold numbers, and texts that do not"):
        use_both()
