"""One test for each way in which other libraries broke, and a fault that it notices.

``check_NN`` states the property, ``test_NN_...`` runs it, and ``test_NN_notices_...``
plants the fault and expects the check to fail. Numbers are never reused.
"""

import numpy as np
import pytest

from privfeat import DPFC, DPAdamLinear, DPLeastSquares
from tests.linear.conftest import spy, three_classes

__all__ = ["spy", "three_classes"]


@pytest.fixture
def make():
    """Return a function that makes a seeded estimator of three classes, fast to fit."""
    few_steps = {DPAdamLinear: {"n_iter": 2}, DPFC: {"n_iter": 2}}

    def make_estimator(cls=DPLeastSquares, **options):
        given = {"epsilon": 2.0, "classes": range(3), "random_state": 0}
        return cls(**(given | few_steps.get(cls, {}) | options))

    return make_estimator


@pytest.fixture
def one_less(three_classes):
    """Return two data sets: the second lacks the fifth record of the first."""
    X, y = three_classes
    return (X, y), (np.delete(X, 4, axis=0), np.delete(y, 4))
