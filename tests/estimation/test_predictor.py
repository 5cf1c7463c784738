"""What a model or a step makes of a record, beside any others."""

import numpy as np
import pandas as pd
import pytest

from privfeat import DPLeastSquares
from privfeat._process import times_matrix
from privfeat.core.sums.records import full_chunks
from privfeat.preprocessing import DPPCA


@pytest.fixture(params=[(150, 64, 8), (60, 200, 20), (1024, 30, 3), (3, 2**21, 2)])
def rows(request):
    """Return rows, their number a place where BLAS takes another way."""
    n, width, n_outputs = request.param
    rng = np.random.default_rng(0)
    return rng.normal(size=(n + 1, width)), rng.normal(size=(width, n_outputs))


def test_a_row_is_multiplied_alike_beside_any_others(rows):
    rows, matrix = rows
    whole = times_matrix(rows, matrix)
    np.testing.assert_allclose(whole, rows @ matrix, rtol=1e-9)
    for some in (slice(-1), slice(1, None), slice(7, 8), slice(None, None, 2)):
        np.testing.assert_array_equal(times_matrix(rows[some], matrix), whole[some])
    np.testing.assert_array_equal(times_matrix(rows[::-1], matrix), whole[::-1])


@pytest.mark.parametrize("width", [3, 64, 255, 1280, 4097, 6001, 30_000, 300_001])
@pytest.mark.parametrize("n_outputs", [1, 2, 3, 8, 20])
def test_a_row_is_multiplied_alike_in_any_place(width, n_outputs):
    """A product by one column takes rows by four, and the rest otherwise."""
    rng = np.random.default_rng(0)
    row, matrix = rng.normal(size=(1, width)), rng.normal(size=(width, n_outputs))
    n_rows = min(1100, max(40, 20_000_000 // width))
    found = times_matrix(np.broadcast_to(row, (n_rows, width)), matrix)
    assert len(np.unique(found, axis=0)) == 1
    np.testing.assert_array_equal(times_matrix(row, matrix), found[:1])


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
def test_predictions_and_components_are_of_one_row():
    """With one row more BLAS rounded all others otherwise."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(151, 64)), np.arange(151) % 8
    options = {"epsilon": np.inf, "random_state": 0}
    clf = DPLeastSquares(classes=range(8), **options).fit(X, y)
    pca = DPPCA(n_components=8, **options).fit(X)
    for of in (
        clf.predict_proba,
        clf.decision_function,
        pca.transform,
        lambda some: pca.inverse_transform(some[:, :8]),
    ):
        np.testing.assert_array_equal(of(X[:-1]), of(X)[:-1])


@pytest.mark.filterwarnings("ignore::privfeat.PrivacyWarning")
@pytest.mark.parametrize("n_rows", [1022, 1023, 1025])
def test_the_order_in_memory_changes_no_prediction(n_rows):
    """Of a table columns stand together, and one row of filling is of both orders."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_rows, 64)), np.arange(n_rows) % 2
    table = pd.DataFrame(np.asfortranarray(X))
    clf = DPLeastSquares(classes=[0, 1], epsilon=np.inf, random_state=0).fit(X, y)
    expected = clf.predict_proba(X)
    for rows in (np.asfortranarray(X), table.to_numpy()):
        np.testing.assert_array_equal(clf.predict_proba(rows), expected)
        np.testing.assert_array_equal(clf.predict_proba(rows[7:8]), expected[7:8])
        for chunk in full_chunks(rows):
            assert chunk.flags.c_contiguous
