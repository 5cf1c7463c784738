"""The small data set of these tests, and the command that fits it."""

import numpy as np

from privfeat.cli import main

CLASS_NAMES = ("ant", "bee", "cat", "dog")
FIT = ("fit", "--estimator", "DPLeastSquares")


def make_split(n_rows, seed):
    """Return rows near one axis per class, and their labels; nobody is a dog."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % 3
    X = np.eye(5)[y] + 0.05 * rng.normal(size=(n_rows, 5))
    return X.astype(np.float32), y.astype(np.int64)


def fit_arguments(features, out, *more):
    """Return the words of a fit with a budget of 20."""
    return *FIT, "--epsilon", "20", "--train", features, "--out", out, *more


def train_on(folder, *more, public=("--test-is-public",)):
    """Return what the command `train` returns on a folder of images."""
    return main(
        [
            "train",
            *("--data", str(folder), "--out", str(folder / "model"), "--model", "mlp"),
            *public,
            *("--image-size", "8", "--noise-multiplier", "1", "--batch", "12"),
            *("--set", "n_iter=10", "--set", "microbatch_size=8"),
            *more,
        ]
    )
