"""One record more never changes what steps make of the others, whatever its type."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import (
    HashingVectorizer,
    TfidfVectorizer,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from privfeat import DPLeastSquares, PrivatePipeline, PublicColumns
from privfeat.pipeline.records import rows_of, through_public_steps
from privfeat.pipeline.steps import read_steps

NUMBERS = [[2, 1], [4, 3], [5, 100]]
MIXED = [[1, "1"], [2, "2"], [1, "01"]]


def made(step, X):
    """Return what a first public step makes of records, as `PrivatePipeline.fit`."""
    steps = read_steps([("public", step), ("clf", DPLeastSquares())])
    rows, _ = through_public_steps(rows_of(X, steps[0]), steps)
    return rows.toarray() if sparse.issparse(rows) else rows


def frozen(step, X):
    return FrozenEstimator(step.fit(X))


FLOATS = np.array([[0.5, 1.0], [3.0, 7.0], [9.0, 2.0]])
OF_NUMBERS = {
    "binarizer": Binarizer(threshold=2.25),
    "identity": FunctionTransformer(),
    "max": Normalizer("max"),
    "normalizer": Normalizer(),
    "polynomials": PolynomialFeatures(3),
    **{
        f.__name__: FunctionTransformer(f)
        for f in (np.reciprocal, np.square, np.sqrt, np.log, np.exp, np.negative)
    },
    **{
        type(step).__name__: frozen(step, FLOATS)
        for step in (MaxAbsScaler(), MinMaxScaler(), RobustScaler(), StandardScaler())
    },
    "frozen normalizer": frozen(Normalizer(), FLOATS),
    "frozen function": frozen(
        FunctionTransformer(lambda X: np.floor_divide(1, X)), FLOATS
    ),
    "frozen imputer": frozen(SimpleImputer(), FLOATS),
}
ONE_TYPE = {
    **{
        t: (lambda rows, t=t: np.array(rows).astype(t))
        for t in ("int8", "int16", "int64", "uint8", "uint64", "float16")
    },
    **{
        t: (lambda rows, t=t: np.array(rows).astype(t))
        for t in ("float32", "float64", "object", "str")
    },
    "list": list,
    "table": pd.DataFrame,
    "table int8": lambda rows: pd.DataFrame(rows).astype("int8"),
    "table float32": lambda rows: pd.DataFrame(rows).astype("float32"),
    "table object": lambda rows: pd.DataFrame(rows, dtype=object),
    "table mixed": lambda rows: pd.DataFrame(rows).astype({0: "int8", 1: "float64"}),
    "table nullable": lambda rows: pd.DataFrame(rows).astype("Int64"),
}


@pytest.mark.parametrize("step", OF_NUMBERS.values(), ids=OF_NUMBERS)
def test_a_step_makes_the_same_of_numbers_of_any_type(step):
    expected = made(step, [*NUMBERS, [2.5, 7.0]])[: len(NUMBERS)]
    tried = 0
    for name, convert in ONE_TYPE.items():
        X = convert(NUMBERS)
        try:
            found = made(step, X)
        except (TypeError, ValueError):  # refused before the charge, for all records
            continue
        np.testing.assert_array_equal(found, expected, err_msg=name)
        tried += 1
    assert tried >= 12


@pytest.mark.parametrize("step", OF_NUMBERS.values(), ids=OF_NUMBERS)
def test_a_step_makes_the_same_of_truths_and_numbers(step):
    truths = [[True, True], [True, True]]
    expected = made(step, [*truths, [2.5, 3.0]])[:2]
    for X in (np.array(truths), truths, pd.DataFrame(truths)):
        np.testing.assert_array_equal(made(step, X), expected)
    mixed = pd.DataFrame({0: [True, True], 1: [1, 1]})
    np.testing.assert_array_equal(made(step, mixed), expected)


DECLARED = PublicColumns(
    {
        "a": {
            "kind": "category",
            "categories": ["1", "2", "x"],
            "missing": "neutral",
            "unseen": "neutral",
        },
        "b": {
            "kind": "category",
            "categories": ["1", "2", "01"],
            "missing": "neutral",
            "unseen": "neutral",
        },
    }
)


def lengths(X):
    """Return how long each value of one record is as text, and its types."""
    values = np.asarray(X, object).ravel()
    shown = [repr(value) for value in values]
    types = str(X.dtypes.tolist()) if hasattr(X, "iloc") else type(X).__name__
    kind = getattr(X, "dtype", "")
    return np.array([[*map(len, shown), len(types), len(str(kind))]])


OF_TABLES = {
    "public columns": (DECLARED, MIXED, "2"),
    "declared": (frozen(FunctionTransformer(lengths), [[1, 1]]), NUMBERS, 2),
}


@pytest.mark.parametrize("other", [2.5, "x", None, np.nan, 2**40], ids=str)
@pytest.mark.parametrize(("step", "rows", "last"), OF_TABLES.values(), ids=OF_TABLES)
@pytest.mark.parametrize(
    "convert",
    [
        list,
        lambda rows: np.array(rows, object),
        lambda rows: pd.DataFrame(
            {k: [r[i] for r in rows] for i, k in enumerate("ab")}
        ),
        lambda rows: pd.DataFrame(rows, columns=["a", "b"], dtype=object),
        lambda rows: [pd.Series(row) for row in rows],
    ],
    ids=["list", "array", "table", "table object", "list of series"],
)
def test_a_record_of_another_type_changes_no_other(convert, step, rows, last, other):
    """Of what is declared public, numbers; of a text beside them all are refused."""
    alone = made(step, convert(rows))
    try:
        beside = made(step, convert([*rows, [other, last]]))
    except TypeError:
        assert (other, last) == ("x", 2)
        return
    np.testing.assert_array_equal(beside[: len(rows)], alone)


@pytest.mark.parametrize(
    "step",
    [
        HashingVectorizer(n_features=8),
        frozen(TfidfVectorizer(), ["aa bb", "bb cc"]),
    ],
    ids=["hashing", "frozen"],
)
def test_a_text_is_made_alike_in_any_container(step):
    texts = ["aa bb", "bb", "cc cc"]
    expected = made(step, [*texts, "bb aa long text \N{SNOWMAN}"])[:3]
    for X in (texts, np.array(texts), np.array(texts, object), pd.Series(texts)):
        np.testing.assert_array_equal(made(step, X), expected)
    np.testing.assert_array_equal(
        made(step, pd.Series(texts, dtype="category")), expected
    )


@pytest.mark.parametrize(
    "step",
    [FunctionTransformer(np.reciprocal), OF_NUMBERS["frozen function"]],
    ids=["public", "declared"],
)
def test_predict_gives_a_record_alike_beside_another_type(step):
    X = np.array([[2.0, 3.0], [4.0, 0.5]] * 50)
    model = PrivatePipeline(
        [("public", step), ("clf", DPLeastSquares(classes=[0, 1]))], epsilon=8.0
    ).fit(X, [0, 1] * 50)
    expected = model.decision_function([*NUMBERS, [2.5, 3.5]])[:3]
    for convert in (list, np.array, pd.DataFrame):
        np.testing.assert_array_equal(
            model.decision_function(convert(NUMBERS)), expected
        )


@pytest.mark.parametrize("step", [Normalizer(), PolynomialFeatures(3)], ids=str)
def test_sparse_rows_are_made_alike_of_any_type(step):
    expected = made(step, sparse.csr_array(np.array([*NUMBERS, [2.5, 7.0]])))[:3]
    for kind in (np.int8, np.float32):
        given = sparse.csr_array(np.array(NUMBERS, kind))
        np.testing.assert_array_equal(made(step, given), expected)


@pytest.mark.parametrize("kind", ["coo", "csc", "lil", "dok"])
def test_sparse_rows_of_other_formats_are_refused_as_by_estimators(kind):
    """SciPy adds up what they store twice in an order that one record decides."""
    given = sparse.csr_array(np.array(NUMBERS, float)).asformat(kind)
    with pytest.raises(ValueError, match=r"Pass X.tocsr\(\)"):
        made(Normalizer(), given)


def test_columns_of_a_declared_step_are_compared_by_name():
    table = pd.DataFrame(FLOATS, columns=["a", "b"])
    step = frozen(StandardScaler(), table)
    made(step, table)
    with pytest.raises(ValueError, match="feature names"):
        made(step, table[["b", "a"]])


class Reciprocal(TransformerMixin, BaseEstimator):
    """Of what sparse rows store, by the type that they have."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        rows = np.asarray(X.toarray() if sparse.issparse(X) else X)
        return np.where(rows != 0, np.reciprocal(np.where(rows == 0, 1, rows)), 0)

    def __sklearn_is_fitted__(self):
        return True


@pytest.mark.parametrize("container", [sparse.csr_array, list])
def test_a_frozen_step_gets_each_record_with_a_type_of_its_own(container):
    whole = np.array([[2, 4], [5, 8], [3, 1]])
    step = FrozenEstimator(Reciprocal().fit(None))
    more = np.vstack([whole, [[2.5, 1.0]]])
    one, two = (made(step, container(rows)) for rows in (whole, more))
    np.testing.assert_array_equal(one, two[:3])
    np.testing.assert_allclose(one, 1.0 / whole)


def test_public_rows_of_a_step_that_are_the_records_are_refused():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = PrivatePipeline(
        [("clf", DPLeastSquares(classes=[0, 1], public=X[:50]))], epsilon=1.0
    )
    with pytest.raises(ValueError, match="must not be the records of the fit"):
        model.fit(X, np.arange(60) % 2)


def test_another_record_changes_no_sum_of_a_wide_row():
    """NumPy's einsum cuts the sum of one row of 8,192 numbers otherwise than of two."""
    X = np.random.default_rng(0).normal(size=(4, 10_000))
    alone = np.vstack([made(Normalizer(), row[None]) for row in X])
    assert np.array_equal(alone, made(Normalizer(), X))
    plain = np.vstack([Normalizer().fit_transform(row[None]) for row in X])
    assert not np.array_equal(plain, Normalizer().fit_transform(X))
