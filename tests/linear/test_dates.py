"""Dates and durations are no numbers, in whatever table they come.

NumPy makes whole numbers of them, in a unit that one record may decide for all.
"""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from privfeat import DPLeastSquares, DPLeastSquaresRegressor

STAYS = np.arange(12).astype("m8[s]")
DAYS = STAYS.astype("M8[s]")
FORMS = {
    "Arrow": lambda values: pa.table({"stay": pa.array(values)}),
    "pandas with types of Arrow": lambda values: pd.DataFrame(
        {"stay": pd.array(pa.array(values), dtype=pd.ArrowDtype(pa.array(values).type))}
    ),
    "categories": lambda values: pd.DataFrame({"stay": pd.Categorical(values)}),
    "sparse": lambda values: pd.DataFrame({"stay": pd.arrays.SparseArray(values)}),
    "objects": lambda values: pd.DataFrame(
        {"stay": pd.Series([*values], dtype=object)}
    ),
    "arrays in objects": lambda values: [[np.array(value), 0.5] for value in values],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("values", [STAYS, DAYS], ids=["durations", "dates"])
def test_dates_are_refused_in_every_table(form, values):
    rows = FORMS[form](values)
    with pytest.raises(TypeError, match="X must hold numbers, got dates"):
        DPLeastSquares(classes=[0, 1]).fit(rows, np.arange(12) % 2)


def test_dates_of_arrow_are_no_targets():
    clf, X = DPLeastSquaresRegressor(target_bounds=(0, 9)), np.ones((12, 1))
    field = STAYS.view([("stay", "m8[s]")])  # a record of one field is a number, too
    for y in (pa.chunked_array([pa.array(STAYS)]), pa.array(STAYS), field):
        with pytest.raises(TypeError, match="y must hold numbers, got dates"):
            clf.fit(X, y)


def test_numbers_of_arrow_are_fitted():
    table = pa.table({"a": np.linspace(0.0, 1.0, 12), "b": np.arange(12)})
    fitted = DPLeastSquares(epsilon=5.0, classes=[0, 1]).fit(table, np.arange(12) % 2)
    assert fitted.coef_.shape[1] == 2
