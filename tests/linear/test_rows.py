"""Fits to feature files, and rows that a fit refuses."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from privfeat import DPFC, DPAdamLinear, DPLeastSquares, DPNewton, open_features
from privfeat.core.bounds.grid import MAX_COLUMNS
from privfeat.core.sums.records import CHUNK_ROWS
from privfeat.data import write_features

pytestmark = pytest.mark.filterwarnings("ignore::privfeat.exceptions.PrivacyWarning")


@pytest.fixture(params=[np.float16, np.float32])
def split(tmp_path, request):
    """A feature file of two chunks, opened lazily."""
    features = np.random.default_rng(0).normal(size=(CHUNK_ROWS + 5, 3))
    path = tmp_path / "features.h5"
    labels = np.arange(len(features)) % 3
    write_features(path, {"train": (features.astype(request.param), labels)})
    return open_features(path)["train"]


@pytest.mark.parametrize("sparse", [True, False])
def test_fit_refuses_too_many_columns_before_it_is_charged(sparse):
    X = csr_array((2, MAX_COLUMNS))
    model = DPAdamLinear(epsilon=1.0, classes=[0, 1], center=False)
    with pytest.raises(ValueError, match=r"fewer than 200000 columns, got 200000"):
        model.fit(X if sparse else X.astype(np.float32).toarray(), [0, 1])
    assert not hasattr(model, "privacy_")


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (DPLeastSquares, {"class_gram": True}),
        (DPNewton, {"n_iter": 1}),
        (DPFC, {"n_iter": 2, "fit_intercept": True}),
        (DPAdamLinear, {"n_iter": 2, "row_scaling": "clip"}),
    ],
)
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_fit_on_a_file_equals_fit_in_memory(split, cls, options, epsilon):
    """Bit for bit with a seed: features, labels and predictions."""
    lazy, memory = (cls(epsilon=epsilon, random_state=0, **options) for _ in range(2))
    lazy.fit(split.X, split.y)
    memory.fit(np.asarray(split.X), split.y)
    np.testing.assert_array_equal(lazy.coef_, memory.coef_)
    np.testing.assert_array_equal(lazy.intercept_, memory.intercept_)
    assert lazy.privacy_ == memory.privacy_
    assert lazy.n_features_in_ == 3
    np.testing.assert_array_equal(
        lazy.predict(split.X), memory.predict(np.asarray(split.X))
    )
    np.testing.assert_array_equal(
        lazy.predict_proba(split.X), memory.predict_proba(np.asarray(split.X))
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_fit_refuses_a_file_that_is_not_finite(split, estimator, plant, bad):
    """A file of another origin: ours are checked when they are written."""
    genuine = plant.genuine("read of lazy features")

    def read(self, start, stop):
        rows = genuine(self, start, stop)
        rows[0, 0] = bad
        return rows

    plant("read of lazy features", read)
    clf = estimator()
    with pytest.raises(ValueError, match="X must not contain NaN or infinity"):
        clf.fit(split.X, split.y)
    assert not hasattr(clf, "privacy_")  # uncharged


def test_fit_refuses_labels_of_another_length_than_the_file(split, estimator):
    with pytest.raises(ValueError, match="inconsistent"):
        estimator().fit(split.X, split.y[:-1])


def test_predict_refuses_a_file_with_other_columns(split, estimator, tmp_path):
    path = tmp_path / "other.h5"
    write_features(path, {"test": (np.ones((4, 5)), np.zeros(4, int))})
    clf = estimator().fit(split.X, split.y)
    with pytest.raises(ValueError, match="5 features"):
        clf.predict(open_features(path)["test"].X)


@pytest.mark.slow
def test_rows_are_refused_where_xla_is_told_to_be_fast_and_wrong():
    """Rows of NaN would not be left out, and one record could be a sum of 2**63."""
    code = (
        "import os, jax; jax.devices(); del os.environ['XLA_FLAGS'];"  # as XLA read it
        "import numpy as np; from privfeat import DPLeastSquares;"
        "DPLeastSquares(classes=[0, 1]).fit(np.ones((4, 2)), [0, 1, 0, 1])"
    )
    flags = "--xla_cpu_enable_fast_math=true --xla_cpu_fast_math_honor_nans=false"
    flags += " --xla_cpu_fast_math_honor_infs=false"
    environment = {**os.environ, "XLA_FLAGS": flags}
    environment |= {"PRIVFEAT_COMPILATION_CACHE": "off"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "PrivacyError: XLA must compute as IEEE 754 says" in done.stderr
