"""A pipeline of two private steps, and records for it."""

import numpy as np
import pytest

from privfeat import DPLeastSquares, PrivatePipeline
from privfeat.preprocessing import DPStandardScaler

BOUNDS = ([-3, -30, -300], [3, 30, 300])


def scaled(clf=None, **options):
    """Return a private scaler before a private classifier."""
    if clf is None:
        clf = DPLeastSquares(classes=[0, 1], row_scaling="clip", clip_norm=2.0)
    options = {"epsilon": 1.0} | options
    return PrivatePipeline(
        [("scale", DPStandardScaler(bounds=BOUNDS)), ("clf", clf)], **options
    )


@pytest.fixture
def columns():
    """Return columns of very unequal size, of which the first decides the class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3)) * [1, 10, 100]
    return X, (X[:, 0] > 0).astype(int)
