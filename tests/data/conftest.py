import numpy as np
import pytest

from privfeat.data import FeatureWriter, write_features


@pytest.fixture
def arrays():
    """Return two splits: features (n, 5) float16 and labels."""
    rng = np.random.default_rng(7)
    return {
        "train": (rng.normal(size=(7, 5)).astype(np.float16), np.arange(7) % 3),
        "test": (rng.normal(size=(4, 5)).astype(np.float16), np.arange(4) % 3),
    }


@pytest.fixture
def feature_file(tmp_path, arrays):
    """Return the path of a small feature file."""
    path = tmp_path / "small.h5"
    write_features(
        path,
        arrays,
        class_names=["cat", "dog", "Zebra é"],
        metadata={"model": "toy", "mean": [0.5, 0.5, 0.5]},
    )
    return path


@pytest.fixture
def begin(tmp_path):
    """Return a function that opens a writer for ``out.h5``."""
    options = {"n_features": 5, "arguments": {"model": "toy"}, "flush_seconds": 0.0}

    def open_writer(**changes):
        return FeatureWriter(tmp_path / "out.h5", **{**options, **changes})

    return open_writer
