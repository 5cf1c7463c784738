"""One record with a half makes floats of a column of whole numbers."""

import numpy as np
import pandas as pd
import pytest
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
    OneHotEncoder,
    PolynomialFeatures,
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
FORMS = {
    "array": WHOLE,
    "list": WHOLE.tolist(),
    "table": pd.DataFrame(WHOLE),
    "mixed table": pd.DataFrame(WHOLE).astype({1: float}),
    "bytes": WHOLE.astype(np.int8),
    "nullable": pd.DataFrame(WHOLE).astype("Int64"),
}
FLOATS = (np.float64, np.float32)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "l", dataset="d", epsilon=9.0, delta=1e-5)


def fit(X, ledger, *steps):
    last = DPLeastSquares(classes=[0, 1], center=False, ledger=ledger)
    return make_pipeline(*steps, last).fit(X, np.arange(40) % 2)


@pytest.mark.parametrize("X", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    "step",
    [
        SQUARE,
        FunctionTransformer(np.reciprocal),
        make_union(Normalizer(), SQUARE),
        make_pipeline(Binarizer(), SQUARE),
        ColumnTransformer([("a", SQUARE, [0])]),
        ColumnTransformer([("a", "passthrough", [0])], remainder=SQUARE),
    ],
    ids=["square", "reciprocal", "union", "chain", "columns", "remainder"],
)
def test_a_ledger_refuses_whole_numbers_before_a_step_that_knows_them(X, step, ledger):
    with pytest.raises(PrivacyError, match=r"types of columns.*PrivatePipeline"):
        fit(X, ledger, step)
    assert ledger.history == []


@pytest.mark.parametrize(
    "steps",
    [
        (Normalizer(), SQUARE),
        (PolynomialFeatures(), SQUARE),
        (FunctionTransformer(np.log1p), SQUARE),
        (Binarizer(),),
        (FunctionTransformer(),),
    ],
    ids=["normalized", "products", "logarithms", "binary", "identity"],
)
def test_a_ledger_takes_whole_numbers_that_become_floats_first(steps, ledger):
    fit(WHOLE, ledger, *steps)
    assert len(ledger.history) == 1


SMALL = pd.DataFrame(WHOLE).astype({0: np.float32, 1: np.int16, 2: np.int16})


@pytest.mark.parametrize(
    "X",
    [
        SMALL,
        SMALL.astype({0: np.float16, 1: np.float32}),
        SMALL.astype({1: "Int16"}),
        SMALL.astype({1: bool}),
        [list(map(np.float32, row)) for row in WHOLE],
    ],
    ids=["whole", "half", "nullable", "boolean", "list"],
)
@pytest.mark.parametrize(
    "step",
    [
        Binarizer(threshold=0.1),
        Normalizer(),
        PolynomialFeatures(),
        FunctionTransformer(validate=True),
        FunctionTransformer(np.sqrt),
        ColumnTransformer([("a", "passthrough", [0, 1])]),
        make_pipeline("passthrough", Normalizer()),
        make_union("passthrough", Normalizer()),
        FrozenEstimator(StandardScaler().fit(WHOLE)),
        FrozenEstimator(make_pipeline(StandardScaler()).fit(WHOLE)),
    ],
    ids=lambda step: type(step).__name__,
)
def test_a_ledger_refuses_columns_that_meet_in_a_type_of_one_record(X, step, ledger):
    """0.1 of float32 is over 0.1, of float64 or not: a half elsewhere decides."""
    with pytest.raises(PrivacyError, match="types of columns"):
        fit(X, ledger, step)
    assert ledger.history == []


@pytest.mark.parametrize(
    "X",
    [
        SMALL.astype(np.float32),
        SMALL.astype({0: float}),
        SMALL.astype({1: np.int32, 2: np.int64}),
        WHOLE.astype(np.float32),
    ],
    ids=["of one type", "of float64", "wide", "array"],
)
def test_a_ledger_takes_columns_that_meet_in_a_type_of_their_own(X, ledger):
    fit(X, ledger, Normalizer())
    assert len(ledger.history) == 1


SOLD = pd.DataFrame(
    {"amount": WHOLE[:, 0] / 4, "city": ["Bonn", "Kiel"] * 20, "number": WHOLE[:, 1]}
)
CITY = FrozenEstimator(OneHotEncoder(sparse_output=False).fit(SOLD[["city"]]))
SCALED = FrozenEstimator(StandardScaler().fit(WHOLE))
TANH = FunctionTransformer(np.tanh, accept_sparse=True)


def columns(square, city=("city",), **remainder):
    return ColumnTransformer([("s", SQUARE, square), ("c", CITY, city)], **remainder)


@pytest.mark.parametrize(
    ("X", "steps"),
    [
        (SOLD, [columns(["amount"])]),
        (SOLD, [columns([0])]),
        (SOLD, [columns([True, False, False])]),
        (SOLD, [columns(slice("amount"), slice(1, 2))]),
        (SOLD[["amount", "city"]], [columns([], remainder=SQUARE)]),
        (WHOLE, [SCALED, SQUARE]),
        (WHOLE, [ColumnTransformer([("a", Normalizer(), [0, 1])]), SQUARE]),
        (list(SOLD["city"]), [make_union(HashingVectorizer(n_features=4)), TANH]),
    ],
    ids=["name", "place", "mask", "slice", "remainder", "frozen", "chain", "texts"],
)
def test_a_ledger_asks_of_the_types_that_a_step_gets(X, steps, ledger):
    """Texts and whole numbers of other steps are none of its own."""
    fit(X, ledger, *steps)
    assert len(ledger.history) == 1


@pytest.mark.parametrize(
    "steps",
    [
        [columns(["number"])],
        [columns(slice("number", None))],
        [columns([], remainder=SQUARE)],
        [columns(make_column_selector("number"))],
        # the first column is now another one
        [ColumnTransformer([("n", "passthrough", [2, 0])]), columns([0], [])],
        [ColumnTransformer([("n", "passthrough", [2]), ("c", CITY, [1])]), SQUARE],
    ],
    ids=["name", "slice", "remainder", "selector", "turned", "beside floats"],
)
def test_a_ledger_finds_the_whole_numbers_that_a_step_gets(steps, ledger):
    with pytest.raises(PrivacyError, match="types of columns"):
        fit(SOLD.assign(number=SOLD["number"] % 4), ledger, *steps)
    assert ledger.history == []


def test_declared_columns_may_have_any_types(ledger):
    numbers = {"kind": "numeric", "bounds": [0, 100]}
    table = SMALL.set_axis([*"abc"], axis=1)
    fit(table, ledger, PublicColumns(dict.fromkeys("abc", numbers)))
    assert len(ledger.history) == 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_ledger_takes_floats_before_any_function(dtype, ledger):
    fit(WHOLE.astype(dtype), ledger, SQUARE, FunctionTransformer(np.reciprocal))
    assert len(ledger.history) == 1


def test_small_whole_numbers_become_small_floats(ledger):
    """Logarithms of bytes have half precision, those of a float column do not."""
    with pytest.raises(PrivacyError, match="types of columns"):
        fit(WHOLE.astype(np.int8), ledger, FunctionTransformer(np.log1p))


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
    "columns", [lambda X: [X.std().argmax()], make_column_selector(dtype_include=int)]
)
def test_a_ledger_refuses_a_step_on_columns_that_records_chose(columns, ledger):
    """The release is of another column than with one record more."""
    scale = DPStandardScaler(bounds=(0, 100), ledger=ledger)
    chosen = ColumnTransformer([("scale", scale, columns)])
    with pytest.raises(PrivacyError, match="ColumnTransformer learned"):
        chosen.fit(pd.DataFrame(WHOLE))
    assert ledger.history == []
    ColumnTransformer([("scale", scale, [0])]).fit(pd.DataFrame(WHOLE))
    assert len(ledger.history) == 1
