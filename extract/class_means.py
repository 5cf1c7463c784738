"""How accurate the class means of some rows are on others."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat.data import FeatureFile

# Rows of norm one, or zero, and the number of the first of them, some at a time.
Blocks = Iterable[tuple[int, NDArray[np.float32]]]


def labels_of(file: FeatureFile) -> NDArray[Any] | None:
    """Return the classes of all splits, or None if a record has none that is named."""
    labels = [split.y for split in file.values()]
    n_classes = len(file.class_names or ())
    named = all(y.ndim == 1 and np.all((0 <= y) & (y < n_classes)) for y in labels)
    return np.concatenate(labels) if named else None


def class_means(
    blocks: Blocks,
    labels: NDArray[Any],
    kept: NDArray[np.bool_],
    shape: tuple[int, int],
) -> NDArray[np.float64]:
    """Return the mean of the ``kept`` rows of each class, far away if there is none.

    ``shape`` is (n_classes, n_features).
    """
    sums = np.zeros(shape)
    for first, rows in blocks:
        part = slice(first, first + len(rows))
        np.add.at(sums, labels[part][kept[part]], rows[kept[part]])
    counts = np.bincount(labels[kept], minlength=len(sums))[:, None]
    return np.divide(sums, counts, out=np.full_like(sums, 1e9), where=counts > 0)


def accuracy_of(
    means: NDArray[np.float64], blocks: Blocks, labels: NDArray[Any]
) -> float:
    """Return the share of rows that are nearest to the mean of their class."""
    found = np.empty_like(labels)
    for first, rows in blocks:
        scores = rows @ means.T - np.sum(means**2, axis=1) / 2
        found[first : first + len(rows)] = np.argmax(scores, axis=1)
    return float(np.mean(found == labels))
