"""A sequence that is no list is refused wherever private data enters.

NumPy gives all of its records one type. A list is asked for the type of each: whether
an array of bytes has a record of floats, or a column of numbers a text.
"""

from collections import UserList, deque
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from privfeat import DPLeastSquares, PublicColumns
from privfeat._types import found_untyped
from privfeat.metrics import private_evaluation
from tests.pitfalls.conftest import N, of_each_edge

# Scores that no guarantee covers, and folds that count rows.
EXACT = {"score y", "regressor score", "network score", "folds X"}
ROWS = [[float(i), 0.5] for i in range(N)]


class Records:
    """A data set as PyTorch has them."""

    def __init__(self, records):
        self._records = records

    def __len__(self):
        return len(self._records)

    def __getitem__(self, place):
        return self._records[place]


class Slices(Records, Sequence):
    """As skorch passes data sets for PyTorch to scikit-learn."""

    dtype, column_names = np.float64, ("a", "b")

    def __array__(self, dtype=None, copy=None):
        return np.asarray([*self], dtype)


@of_each_edge(without=EXACT)
@pytest.mark.parametrize("kind", [deque, UserList, Records, Slices])
def test_no_edge_takes_a_sequence_of_no_type(edges, edge, kind):
    of_rows = edge.endswith(" X") or edge in ("predict", "network predict")
    given = ROWS if of_rows else [i % 2 for i in range(N)]
    with pytest.raises(TypeError, match=r"Pass list\(X\)"):
        edges[edge](kind(given))


@pytest.mark.parametrize("kind", [deque, UserList, Records, Slices])
def test_no_table_and_no_evaluation_takes_one(kind):
    numeric = {"kind": "numeric", "bounds": [0, 9], "missing": "neutral"}
    columns = PublicColumns({"a": numeric, "b": numeric})
    model = DPLeastSquares(epsilon=1.0, classes=[0, 1]).fit(ROWS, [0, 1] * 3)
    for call in (
        lambda: columns.fit(kind(ROWS)),
        lambda: columns.fit(ROWS).transform(kind(ROWS)),
        lambda: private_evaluation(model, kind(ROWS), [0, 1] * 3, epsilon=1.0),
        lambda: private_evaluation(model, ROWS, kind([0, 1] * 3), epsilon=1.0),
    ):
        with pytest.raises(TypeError, match=r"Pass list\(X\)"):
            call()


@pytest.mark.parametrize("kind", [deque, UserList, Records, Slices])
def test_lists_arrays_and_tables_are_no_such_sequences(kind):
    assert found_untyped(kind(ROWS))
    frame = pd.DataFrame(ROWS)
    for known in (ROWS, tuple(ROWS), np.array(ROWS), frame, frame[0], range(3), "text"):
        assert found_untyped(known) is None


@pytest.mark.filterwarnings("ignore:X has feature names")
@of_each_edge(without=EXACT | {"temperature X"})  # of which pandas makes a table
def test_no_edge_takes_a_dictionary_of_arrow(edges, edge):
    """NumPy gave its gaps the value that appeared last, of another record."""
    pa = pytest.importorskip("pyarrow")
    gaps = [1, None, 0, 1, None, 0]
    column = pa.chunked_array([pa.array(gaps).dictionary_encode()])
    table = pa.table({"a": column, "b": pa.array([0.5] * N)})
    of_rows = edge.endswith(" X") or edge in ("predict", "network predict")
    with pytest.raises(TypeError, match="dictionary type of Arrow"):
        edges[edge](table if of_rows else column)
