"""Rows of texts as an extractor takes them, and pairs as it gives them back."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..batches import FeatureBatch
from .source import BadTextError, TextRows

PAIRS = ("u", "v", "|u - v|", "u * v")  # recorded in the feature file
Rows = NDArray[np.float32]


def feature_batches(
    rows: TextRows,
    features: Callable[[list[str]], Rows],
    *,
    n_features: int,
    start: int,
    stop: int | None,
    size: int,
) -> Iterator[FeatureBatch]:
    """Yield features of the rows from ``start`` on, in order, ``size`` rows at a time.

    Parameters
    ----------
    rows : TextRows
        One split.
    features : callable
        From texts to an array with a row for each, which depends on that text alone.
    n_features : int
        Columns of what is yielded.
    start, stop : int or None
        Rows to leave out at the beginning, and the row to stop before.
    size : int
        Rows of a batch.
    """
    count = len(rows) if stop is None else min(stop, len(rows))
    for first in range(start, count, size):
        found, labels, failures = [], [], []
        for row in range(first, min(first + size, count)):
            try:
                texts, label = rows.load(row)
                found.append(texts)
                labels.append(label)
            except BadTextError as error:
                failures.append((rows.names[row], str(error)))
        batch = np.empty((0, n_features), np.float32)
        if found:
            sides = [features(list(side)) for side in zip(*found, strict=True)]
            batch = sides[0] if len(sides) == 1 else _pairs(*sides)
        yield FeatureBatch(batch, np.asarray(labels, np.int64), failures)


def of_pairs(columns: Any) -> dict[str, Any]:
    """Return what is recorded of pairs: their parts, where ``columns`` are two."""
    return {"pairs": list(PAIRS)} if len(columns) > 1 else {}


def width(n_features: int, columns: Any) -> int:
    """Return the number of features of one text, or of a pair."""
    return n_features * (1 if len(columns) == 1 else len(PAIRS))


def _pairs(u: Rows, v: Rows) -> Rows:
    """Return both sides, their distance and their product, each of norm one.

    Source: Conneau et al., Supervised Learning of Universal Sentence Representations,
    2017, Section 3.1.
    """
    return np.hstack([_unit(part) for part in (u, v, np.abs(u - v), u * v)])


def _unit(rows: Rows) -> Rows:
    """Return rows of norm one; zeros stay zeros, as the distance of equal texts."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0, norms, 1.0), np.float32)
