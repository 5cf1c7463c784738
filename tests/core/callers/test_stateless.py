"""Which steps of a pipeline learn from the records."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    StandardScaler,
)

from privfeat import DPLeastSquares, PrivacyLedger, PublicColumns
from privfeat.core.callers.stateless import learns
from privfeat.exceptions import PrivacyError


@pytest.mark.parametrize(
    ("function", "learned"),
    [
        *((None, False), (np.tanh, False)),
        *((np.mean, True), (np.matmul, True)),  # a ufunc of whole axes
        (np.frompyfunc(abs, 1, 1), True),  # may remember what it was given
        (lambda X: X, True),
    ],
)
def test_functions_of_whole_arrays_may_learn(function, learned):
    assert learns(FunctionTransformer(function)) is learned


class Unknown:
    """A step that does not say whether it learns."""


class Centred(Normalizer):
    """A step that learns, derived from one that does not, whose tags it has."""

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return super().fit(X)


class Filled(PublicColumns):
    """Public columns with a part that nobody knows."""


FIXED, LEARNING, HASHED = Normalizer(), StandardScaler(), HashingVectorizer()


def columns(step, chosen, **others):
    return ColumnTransformer([("a", step, chosen)], sparse_threshold=0, **others)


EYE = np.eye(40, 4)


class Named(Centred):
    """A step that learns, with a parameter that a chain has as well."""

    def __init__(self, steps=("strip", "lower")):
        super().__init__()
        self.steps = steps


class LearningChain(Pipeline):
    """A chain that learns beside its steps."""


COLUMNS = {"a": {"kind": "number", "bounds": [0, 1]}}


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (None, False),
        ("passthrough", False),
        (FIXED, False),
        (LEARNING, True),
        (Unknown(), True),
        (Centred(), True),
        (Named(), True),
        (Named(()), True),
        (LearningChain([("a", FIXED)]), True),
        (PublicColumns(COLUMNS), False),
        (Filled(COLUMNS), True),
        (FrozenEstimator(LEARNING), False),
        (make_pipeline(FIXED, FIXED), False),
        (make_pipeline(FIXED, LEARNING), True),
        (make_pipeline(LEARNING, FIXED), True),
        (FeatureUnion([("a", FIXED), ("b", "passthrough")]), False),
        (FeatureUnion([("a", FIXED), ("b", make_pipeline(LEARNING))]), True),
        (columns(FIXED, [0]), False),
        (columns(LEARNING, [0]), True),
        (columns(FIXED, [0], remainder=LEARNING), True),
        (columns(HASHED, "a"), False),
        (columns(FIXED, len), True),
        (columns(FIXED, make_column_selector("a")), False),
        (columns(FIXED, make_column_selector(None, dtype_include=int)), True),
        (columns("drop", [0], remainder=make_pipeline(FIXED)), False),
        (ColumnTransformer([("a", FIXED, [0])]), True),
        (make_pipeline(HASHED, ColumnTransformer([("a", FIXED, [0])])), True),
        (FeatureUnion([("a", HASHED), ("b", FIXED)]), False),
        (FunctionTransformer(), False),
        (FunctionTransformer(np.log1p), False),
        (FunctionTransformer(np.sort), True),
        (FunctionTransformer(np.matmul), True),
    ],
)
def test_a_step_learns_unless_all_of_it_is_known_not_to(step, expected):
    assert learns(step) == expected


@pytest.mark.parametrize("threshold", [0.3, 0])
@pytest.mark.parametrize(
    "X", [csr_matrix(EYE), pd.DataFrame.sparse.from_spmatrix(csr_matrix(EYE)), EYE]
)
def test_a_ledger_refuses_rows_that_zeros_of_all_make_dense(X, threshold, tmp_path):
    """One row of zeros more, and all others are summed in another order."""
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=9.0, delta=1e-5)
    chosen = ColumnTransformer([("a", FIXED, [0, 1])], sparse_threshold=threshold)
    clf = DPLeastSquares(classes=[0, 1], center=False, ledger=ledger)
    refused = pytest.raises(PrivacyError, match="sparse_threshold=0")
    with refused if threshold else nullcontext():
        make_pipeline(chosen, clf).fit(X, np.arange(40) % 2)
    assert len(ledger.history) == (not threshold)
