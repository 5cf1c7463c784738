"""One record with a word makes texts of all numbers of a column, read by a step."""

import io
import math

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from privfeat import (
    DPLeastSquares,
    DPRandomizedSearch,
    PrivatePipeline,
    TemperatureScaling,
)
from privfeat.metrics import private_evaluation
from privfeat.pipeline.records import rows_of
from privfeat.pipeline.steps import read_steps
from privfeat.recalibration import ConformalClassifier
from privfeat.selection import private_cross_val_score

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")

WARDS = ["1", "2", "3"] * 60
Y = np.array([ward == "1" for ward in WARDS], int)
ENCODER = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
LAST = DPLeastSquares(classes=[0, 1], row_scaling="clip", center=False)
REFUSED = "X must hold rows of numbers, or one text for each record"


def read(*wards, **options):
    return pd.read_csv(io.StringIO("\n".join(["ward", *wards])), **options)


def read_by_arrow(*wards):
    lines = "\n".join(["ward,n", *(f"{ward},1" for ward in wards)])
    return pyarrow.csv.read_csv(io.BytesIO(lines.encode())).select(["ward"])


def pipeline_of(first, **budget):
    return PrivatePipeline([("first", first), ("clf", LAST)], **budget)


def trained(table):
    return make_pipeline(ENCODER, LogisticRegression()).fit(table, Y)


def encoded(table, **budget):
    return pipeline_of(FrozenEstimator(ENCODER.fit(table)), **budget)


USES = {
    "fit": lambda X, y, table: encoded(table, epsilon=math.inf).fit(X, y),
    "folds": lambda X, y, table: private_cross_val_score(
        encoded(table), X, y, n_splits=2, epsilon=math.inf
    ),
    "search": lambda X, y, table: DPRandomizedSearch(
        encoded(table), {"clf__ridge": [1.0]}, epsilon=math.inf
    ).fit(X, y),
    "measured": lambda X, y, table: private_evaluation(trained(table), X, y, epsilon=8),
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


# the search takes seconds, and is read as the folds are
@pytest.mark.parametrize(
    "use",
    [
        pytest.param(use, id=name, marks=pytest.mark.slow if name == "search" else ())
        for name, use in USES.items()
    ],
)
def test_a_table_with_a_word_is_refused_wherever_a_model_of_others_sees_it(use):
    table, beside = read(*WARDS), read(*WARDS, "ICU")
    for X in (beside, beside.to_numpy(), beside.to_numpy().tolist()):
        with pytest.raises(TypeError, match=REFUSED):
            use(X, [*Y, 0], table)
    use(table, Y, table)


READ = {
    "as it comes": read,
    "asked for": lambda *wards: read(*wards, dtype="string"),
    "categories": lambda *wards: read(*wards).astype("category"),
    "guessed": lambda *wards: read(*wards).convert_dtypes(),
    "made later": lambda *wards: read(*wards).astype("string"),
    "nullable": lambda *wards: read(*wards, dtype_backend="numpy_nullable"),
    "arrow": lambda *wards: read(*wards, dtype_backend="pyarrow"),
    "truth": lambda *wards: read(*wards, true_values=["1"], false_values=["2", "3"]),
    "dates": lambda *wards: read(*[f"2020-01-0{w}" for w in wards], parse_dates=[0]),
    "hexadecimal": lambda *wards: read_by_arrow(*[f"0x1{w}" for w in wards]),
    "gaps": lambda *wards: read_by_arrow(*[{"1": "NA"}.get(w, w) for w in wards]),
    "intervals": lambda *wards: pd.DataFrame(
        {"ward": pd.cut(pd.to_numeric(pd.Series(wards), errors="coerce"), [0, 2, 9])}
    ),
}
FORMS = {
    "table": lambda table: table,
    "array": lambda table: table.to_numpy(),
    "lists": lambda table: table.to_numpy().tolist(),
    "series": lambda table: [row for _, row in table.iterrows()],
    "arrays": lambda table: list(table.to_numpy()),
    "mappings": lambda table: table.to_dict("records"),
    "column": lambda table: table["ward"],
    "values": lambda table: table["ward"].tolist(),
}


def seen_by(step, X):
    """Return each record as a step sees it, or None if it is refused."""
    try:
        first, *_ = read_steps([("first", step), ("clf", LAST)])
        rows = rows_of(X, first)
    except TypeError:
        return None
    rows = rows.to_numpy() if hasattr(rows, "iloc") else rows
    return [repr(rows[i : i + 1]) for i in range(len(rows))]


@pytest.mark.parametrize("more", ["ICU", "2.5", "", "NA"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("table", READ.values(), ids=READ)
def test_no_record_decides_how_a_step_sees_another(table, form, more):
    """However tables are read: both are seen alike, or one is refused."""
    if table is READ["dates"] and more:
        pytest.skip("which that reader refuses")
    texts = table is READ["made later"] and form in (FORMS["column"], FORMS["values"])
    if texts:  # docs/guides/unnoticed.md
        pytest.skip("the user made texts of numbers for a step that reads texts")
    step = FrozenEstimator(FunctionTransformer(lambda X: X).fit([[0.0]]))
    one, two = table("1", "2", "3"), table("1", "2", "3", more)
    if not hasattr(one, "iloc"):
        one, two = one.to_pandas(), two.to_pandas()
    alone, beside = (seen_by(step, form(found)) for found in (one, two))
    assert alone is None or beside is None or alone == beside[:3]


def test_texts_stand_alone_one_for_each_record():
    texts = ["to be", "or not", "3"] * 60
    words = FrozenEstimator(CountVectorizer().fit(texts))
    model = pipeline_of(words, epsilon=math.inf)
    column = pd.Series(texts)
    for X in (texts, np.array(texts), column, column.astype("string")):
        assert model.fit(X, Y).score(X, Y) > 0.6
    for X in (
        column.to_frame(),
        [[text] for text in texts],
        [*texts[1:], 3],
    ):
        with pytest.raises(TypeError, match=REFUSED):
            model.fit(X, Y)
    for gap in (None, "NA", "nan"):
        with pytest.raises(TypeError, match="'' for gaps and for what readers may"):
            model.fit(pd.Series([*texts[1:], gap]), Y)
