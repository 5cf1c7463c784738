"""What a step makes of a record follows from that record alone, to the last bit."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import (
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)

from privfeat import DPLeastSquares, PublicColumns
from privfeat.pipeline.records import by_record, rows_of
from privfeat.pipeline.steps import read_steps
from privfeat.preprocessing import DPStandardScaler


def step_of(estimator):
    return read_steps([("step", estimator), ("clf", DPLeastSquares())])[0]


class Made(TransformerMixin, BaseEstimator):
    """A transformer of a function, fitted."""

    def __init__(self, function=None):
        self.function = function

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return self.function(X)


def frozen(function):
    return step_of(FrozenEstimator(Made(function).fit(None)))


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(1500, 5))


@pytest.mark.parametrize(
    "estimator",
    [
        Normalizer(),
        Normalizer("l1"),
        PolynomialFeatures(3),
        FrozenEstimator(StandardScaler().fit(np.eye(5))),
        FrozenEstimator(Made(lambda X: X @ np.ones((5, 2))).fit(None)),
    ],
    ids=["l2", "l1", "products", "frozen scaler", "frozen product"],
)
def test_a_record_is_made_alike_beside_any_others(estimator, rows):
    step = step_of(estimator)
    if not step.declared:
        step.estimator.fit(rows)
    made = by_record(step, rows)
    for start, stop in [(0, 1), (3, 1400), (701, 702), (1, 1500)]:
        np.testing.assert_array_equal(
            by_record(step, rows[start:stop]), made[start:stop]
        )


def test_a_declared_step_that_mixes_records_gets_one_at_a_time(rows):
    step = frozen(lambda X: X - X.mean(axis=0))
    np.testing.assert_array_equal(by_record(step, rows[:5]), np.zeros((5, 5)))


@pytest.mark.parametrize(
    "function",
    [
        lambda X: X[:0],
        lambda X: np.vstack([X, X]),
        lambda X: X[0],
        lambda X: X[None],
    ],
)
def test_a_step_that_drops_or_adds_records_is_refused(function, rows):
    with pytest.raises(ValueError, match="one row for each record"):
        by_record(frozen(function), rows[:3])


def test_an_error_of_a_step_shows_no_data(rows):
    def fails(X):
        raise KeyError(f"secret {X[0, 0]}")

    with pytest.raises(ValueError, match="kept back") as caught:
        by_record(frozen(fails), rows[:3])
    assert "secret" not in str(caught.value)


def test_a_table_goes_to_a_declared_step_row_by_row():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    step = frozen(lambda X: X[["a"]] * len(X))
    np.testing.assert_array_equal(by_record(step, table), [[1.0], [2.0], [3.0]])


def test_a_gap_in_a_table_is_nan_whatever_stands_for_it():
    table = pd.DataFrame({"a": [1, None, pd.NA, pd.NaT, np.nan, 2]}, dtype=object)
    step = frozen(lambda X: X.to_numpy(np.float64))
    gap = [np.nan]
    np.testing.assert_array_equal(
        by_record(step, rows_of(table, step)), [[1.0], gap, gap, gap, gap, [2.0]]
    )


def test_sparse_rows_stay_sparse():
    step = step_of(HashingVectorizer(n_features=2**10))
    made = by_record(step, ["a b", "b c", "c"])
    assert sparse.issparse(made)
    assert made.shape == (3, 1024)


def test_whole_numbers_become_float64_whatever_the_others_are():
    for step in (step_of(DPStandardScaler(bounds=(-1, 1))), step_of(Normalizer())):
        assert rows_of([[1, 2], [3, 4]], step).dtype == np.float64
        for given in (
            np.eye(2, dtype=np.float32),
            sparse.eye_array(2, 2, dtype=np.int8, format="csr"),
        ):
            assert rows_of(given, step).dtype == np.float64


def test_a_table_of_public_columns_is_read_as_it_is():
    columns = PublicColumns({"a": {"kind": "integer", "bounds": [0, 10]}})
    table = pd.DataFrame({"a": [0, 5, 10]})
    assert rows_of(table, step_of(columns)) is table
    made = by_record(step_of(columns), table)
    np.testing.assert_array_equal(made, [[-1.0], [0.0], [1.0]])


def test_a_frozen_step_is_one_that_nobody_else_changes():
    given = FrozenEstimator(Normalizer().fit([[1.0]]))
    (step, _) = read_steps([("a", given), ("b", DPStandardScaler(bounds=(-1, 1)))])
    given.estimator = None
    assert isinstance(step.estimator.estimator, Normalizer)


@pytest.mark.parametrize("more", [[], [3.0]])
def test_a_text_that_a_step_makes_of_one_record_changes_no_other(more):
    """A second step saw objects where it had seen floats."""
    first = frozen(lambda X: np.array([["a text"]]) if X[0, 0] == 3 else X)
    second = frozen(lambda X: np.array([[float(X.dtype == np.float64)]]))
    made = by_record(first, np.array([[1.0], [2.0], *[[value] for value in more]]))
    np.testing.assert_array_equal(by_record(second, made)[:2], [[1.0], [1.0]])
