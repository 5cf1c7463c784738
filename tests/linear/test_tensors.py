"""Tensors of torch and JAX are rows like any others."""

import os
import subprocess
import sys
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import set_config

from privfeat import DPFC, DPLeastSquares
from privfeat.exceptions import PrivacyWarning
from privfeat.preprocessing import DPStandardScaler
from tests.later import Later

torch = Later("torch")


def test_tensors_are_fitted_as_arrays_are():
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    y = np.arange(40) % 2
    for estimator in (
        DPFC(classes=[0, 1], n_iter=2),
        DPLeastSquares(classes=[0, 1]),
        DPStandardScaler(bounds=(-3, 3)),
    ):
        estimator.set_params(random_state=0)
        asks = "transform" if hasattr(estimator, "transform") else "predict_proba"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            expected = getattr(estimator.fit(X, y), asks)(X)
            for tensor in (torch.tensor, jnp.asarray):
                estimator.fit(tensor(X), tensor(y))
                found = getattr(estimator, asks)(tensor(X))
                np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_nor_does_scikit_learn_keep_them():
    """In a process of its own: SciPy must know it before it is imported."""
    told = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, "-m", __name__], env=told, check=True)


if __name__ == "__main__":
    set_config(array_api_dispatch=True)
    test_tensors_are_fitted_as_arrays_are()
