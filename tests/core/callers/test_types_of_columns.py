"""One record with a half makes floats of a column of whole numbers."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_selector,
)
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    StandardScaler,
)

from privfeat import (
    DPLeastSquares,
    DPLeastSquaresRegressor,
    PrivacyLedger,
    PublicColumns,
)
from privfeat.exceptions import PrivacyError
from privfeat.preprocessing import DPStandardScaler

SQUARE = FunctionTransformer(np.square)
WHOLE = np.random.default_rng(0).integers(1, 100, size=(40, 3))
TABLE = pd.DataFrame(WHOLE).set_axis([*"abc"], axis=1)
FLOATS = TABLE.astype(float)
TEXTS = ["Bonn", "Kiel"] * 20
STRINGS = pd.Series(TEXTS, dtype="string", name="city")
SCALED = FrozenEstimator(StandardScaler().fit(WHOLE))


def columns(step, chosen, **others):
    return ColumnTransformer([("a", step, chosen)], sparse_threshold=0, **others)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "l", dataset="d", epsilon=9.0, delta=1e-5)


def fit(X, ledger, *steps):
    last = DPLeastSquares(classes=[0, 1], center=False, ledger=ledger)
    return make_pipeline(*steps, last).fit(X, np.arange(40) % 2)


MIXED = {
    "array": WHOLE,
    "list": WHOLE.tolist(),
    "list of floats": WHOLE.astype(float).tolist(),
    "bytes": WHOLE.astype(np.int8),
    "sparse": csr_matrix(WHOLE),
    "repeated": csr_matrix(([1.0] * 80, [0, 0] * 40, range(0, 81, 2)), (40, 2)),
    "unsorted": csr_matrix(([1.0] * 80, [1, 0] * 40, range(0, 81, 2)), (40, 2)),
    "table": TABLE,
    "mixed": TABLE.astype({"b": float}),
    "nullable": TABLE.astype("Int64"),
    "nullable floats": FLOATS.astype("Float64"),
    "truth": FLOATS.astype({"a": bool}),
    "codes": FLOATS.assign(a=pd.Categorical(WHOLE[:, 0])),
    "sparse column": FLOATS.assign(a=TABLE["a"].astype(pd.SparseDtype(int))),
    "objects": FLOATS.astype({"a": object}),
    "array of objects": WHOLE.astype(object),
    "float32": WHOLE.astype(np.float32),
    "table of float32": FLOATS.astype(np.float32),
    "two widths": FLOATS.astype({"a": np.float32}),
    "list of float32": [list(map(np.float32, row)) for row in WHOLE],
}


@pytest.mark.parametrize("X", MIXED.values(), ids=MIXED)
def test_a_ledger_refuses_columns_whose_type_one_record_decides(X, ledger):
    """0.1 of float32 is over 0.1, of float64 it is not."""
    with pytest.raises(PrivacyError, match=r"types of columns.*PublicColumns"):
        fit(X, ledger, "passthrough")
    assert ledger.history == []


@pytest.mark.parametrize(
    "step",
    [
        SQUARE,  # that of a byte wraps
        Normalizer(),
        make_union(Normalizer(), SQUARE),
        make_pipeline(Binarizer(), SQUARE),
        columns("passthrough", [0, 1]),
        SCALED,
    ],
    ids=["function", "step", "union", "chain", "columns", "frozen"],
)
def test_a_ledger_refuses_whole_numbers_before_any_step(step, ledger):
    with pytest.raises(PrivacyError, match="types of columns"):
        fit(WHOLE, ledger, step)
    assert ledger.history == []


TAKEN = {
    "float64": (WHOLE.astype(float), SQUARE),
    "sparse": (csr_matrix(WHOLE, dtype=float), Normalizer()),
    "sparse table": (FLOATS.astype(pd.SparseDtype(float, 0)), Normalizer()),
    "table": (FLOATS, Normalizer()),
    "texts": (TEXTS, HashingVectorizer(n_features=4)),
    "array of texts": (np.array(TEXTS), HashingVectorizer(n_features=4)),
    "strings": (STRINGS, HashingVectorizer(n_features=4)),
}


@pytest.mark.filterwarnings("ignore:pandas.DataFrame with sparse columns")
@pytest.mark.parametrize(("X", "step"), TAKEN.values(), ids=TAKEN)
def test_a_ledger_takes_floats_of_one_type_and_texts(X, step, ledger):
    fit(X, ledger, step)
    assert len(ledger.history) == 1


def test_declared_columns_may_have_any_types(ledger):
    numbers = {"kind": "numeric", "bounds": [0, 100]}
    small = TABLE.astype({"a": np.float32, "b": np.int16})
    fit(small, ledger, PublicColumns(dict.fromkeys("abc", numbers)), Normalizer())
    assert len(ledger.history) == 1


def test_whole_numbers_need_no_floats_without_a_step(ledger):
    fit(TABLE, ledger)
    assert len(ledger.history) == 1


def test_a_ledger_asks_of_the_types_of_targets(ledger):
    fit = DPLeastSquaresRegressor(target_bounds=(0.0, 1e4), ledger=ledger)
    inverse = {"inverse_func": np.sqrt, "check_inverse": False}
    squared = TransformedTargetRegressor(fit, func=np.square, **inverse)
    with pytest.raises(PrivacyError, match="types of columns"):
        squared.fit(WHOLE, WHOLE[:, 0])
    assert ledger.history == []
    squared.fit(WHOLE, WHOLE[:, 0].astype(float))
    assert len(ledger.history) == 1


@pytest.mark.parametrize(
    "chosen", [lambda X: [X.std().argmax()], make_column_selector(dtype_include=int)]
)
def test_a_ledger_refuses_a_step_on_columns_that_records_chose(chosen, ledger):
    """The release is of another column than with one record more."""
    scale = DPStandardScaler(bounds=(0, 100), ledger=ledger)
    with pytest.raises(PrivacyError, match="ColumnTransformer learned"):
        ColumnTransformer([("scale", scale, chosen)]).fit(TABLE)
    assert ledger.history == []
    ColumnTransformer([("scale", scale, [0])]).fit(TABLE)
    assert len(ledger.history) == 1
