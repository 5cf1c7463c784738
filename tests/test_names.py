"""The first record of a file without names is no list of names."""

import warnings

import numpy as np
import pandas as pd
import pytest

from privfeat import DPFC, DPLeastSquares
from privfeat._messages import may_be_a_record
from privfeat.exceptions import PrivacyWarning
from privfeat.preprocessing import DPStandardScaler


@pytest.mark.parametrize(
    "names",
    [
        ["6.3", "3.3", "6.0", "2.5"],
        ["63", "33", "60"],
        ["1", "0", "2", "setosa"],
        ["7", "7.1"],
        ["x", "0.5"],
        ["34", "80", "180"],
        ["34", "80"],
        ["34"],
        ["36.5", "37.5"],
        ["Ann", "34", "ill"],
    ],
)
def test_a_record_is_no_list_of_names(names):
    assert may_be_a_record(names)
    table = pd.DataFrame(np.zeros((4, len(names))), columns=names)
    for fit in (
        lambda: DPLeastSquares(classes=[0, 1]).fit(table, [0, 1, 0, 1]),
        lambda: DPStandardScaler(bounds=[(0, 1)] * len(names)).fit(table),
    ):
        with pytest.raises(ValueError, match="Give it one") as refused:
            fit()
        assert not any(name in str(refused.value) for name in names if "." in name)


@pytest.mark.parametrize(
    "names",
    [
        ["age", "bmi"],
        ["0", "1", "2"],
        ["age", "2020", "2021"],
        ["400.5", "401.0", "401.5", "402.0"],
        ["3", "17", "18", "40"],
        ["0"],
        [3, 1, 2],
        ["nan", "inf"],
        [],
    ],
)
def test_numbers_that_count_up_are_names(names):
    assert not may_be_a_record(names)


def test_a_table_with_names_is_fitted():
    table = pd.DataFrame(np.eye(4), columns=[f"pixel {i}" for i in range(4)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        clf = DPFC(classes=[0, 1], n_iter=1).fit(table, [0, 1, 0, 1])
    assert clf.feature_names_in_.tolist() == [*table.columns]
