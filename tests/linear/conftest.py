"""Small data, and a spy that sees every exact sum entering the mechanism."""

import numpy as np
import pytest

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNearestMean, DPNewton
from privfeat.audit import recording
from tests import reference
from tests.linear.centers import FITS

ESTIMATORS = [DPLeastSquares, DPNewton, DPFC, DPAdamLinear, DPNearestMean]


def passes(estimator, check):
    """Run a check of scikit-learn; one of fifty records without noise."""
    if check.func.__name__ == "check_class_weight_classifiers":
        estimator.set_params(epsilon=np.inf)
    check(estimator)


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


@pytest.fixture(params=FITS)
def centred(request):
    return FITS[request.param]


FITTED = {"coef_", "intercept_", "center_", "classes_", "n_iter_", "privacy_"}


LABEL_SETS = [set(), {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}]


@pytest.fixture
def several_labels():
    """Forty records of every set of three labels, and the sets."""
    rng = np.random.default_rng(0)
    carried = [LABEL_SETS[i] for i in rng.integers(0, len(LABEL_SETS), 40)]
    Y = indicators(carried)
    return rng.normal(size=(40, 4)) + 3.0 * Y @ np.eye(3, 4), Y, carried


def indicators(carried):
    return np.array([reference.indicator(labels, 3) for labels in carried], int)


@pytest.fixture
def users():
    """Forty records of ten users, who have from one to nine, in any order."""
    rng = np.random.default_rng(0)
    sizes = [1, 1, 2, 3, 3, 4, 4, 6, 7, 9]
    groups = rng.permutation(np.repeat(np.arange(10), sizes))
    y = rng.integers(0, 3, 40)
    return rng.normal(size=(40, 4)) + 2.0 * np.eye(3, 4)[y], y, groups
