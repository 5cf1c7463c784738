import numpy as np
import pytest

from privfeat import DPAdamLinear


@pytest.fixture
def clusters():
    """One hundred records, 200 features, four classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=100)
    return rng.normal(size=(4, 200))[y] + rng.normal(size=(100, 200)), y


@pytest.fixture
def one_step():
    """Return a function that makes an estimator of one noisy gradient step."""

    def make(**options):
        settings = {
            "epsilon": 8.0,
            "classes": range(4),
            "n_iter": 1,
            "optimizer": "sgd",
            "learning_rate": 1.0,
            "center": False,
            "fit_intercept": False,
            "random_state": 1,
        }
        return DPAdamLinear(**(settings | options))

    return make
