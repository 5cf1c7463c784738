"""Small data, and a spy that sees every exact sum entering the mechanism."""

import numpy as np
import pytest

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNewton
from privfeat.audit import recording

ESTIMATORS = [DPLeastSquares, DPNewton, DPFC, DPAdamLinear]


@pytest.fixture
def spy():
    with recording() as recorder:
        yield recorder


@pytest.fixture(params=ESTIMATORS, ids=lambda cls: cls.__name__)
def estimator(request):
    return request.param


@pytest.fixture
def three_classes():
    """Thirty-one records, four features, three separated classes of unequal size.

    Unequal, because a balanced intercept has a gradient of zero at the start, whose
    rounding Adam would turn into a full step.
    """
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2], [8, 10, 13]))
    X = rng.normal(size=(31, 4)) + 2.0 * np.eye(3, 4)[y]
    return X, y


@pytest.fixture
def two_classes(three_classes):
    X, y = three_classes
    return X[y < 2], y[y < 2]
