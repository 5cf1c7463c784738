"""What a search accepts."""

import numpy as np
import pytest
from scipy import stats

from privfeat import DPFC
from privfeat.selection.inputs import check_public


def test_public_rows_are_looked_at_where_they_are_listed():
    """A distribution of them has no rows before one is drawn."""
    X = np.zeros((4, 2))
    estimator = DPFC(public=np.ones((3, 2)))
    check_public({"public": stats.norm()}, estimator, X)
    for candidates in ({"public": [X]}, [{"public": [np.ones((3, 2)), X]}]):
        with pytest.raises(ValueError, match="must not be the records"):
            check_public(candidates, estimator, X)
    with pytest.raises(ValueError, match="must be finite"):
        check_public({"public": [np.full((3, 2), np.nan)]}, estimator, X)
