"""Rows of texts as an extractor takes them, and pairs as it gives them back."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..batches import FeatureBatch
from .source import BadTextError, TextRows

PAIRS = ("u", "v", "|u - v|", "u * v")  # recorded in the feature file
Rows = NDArray[np.float32]


class TextExtractor(ABC):
    """Turns texts into rows, or pairs of texts; ``n_at_once`` are read together."""

    n_features: int
    n_at_once: int

    def batches(
        self, images: TextRows, *, start: int, stop: int
    ) -> Iterator[FeatureBatch]:
        """Yield features of the texts from ``start`` on, before ``stop``, in order."""
        places = range(len(images))[start:stop]
        for first in range(0, len(places), self.n_at_once):
            found, labels, failures = [], [], []
            for place in places[first : first + self.n_at_once]:
                try:
                    texts, label = images.load(place)
                    found.append(texts)
                    labels.append(label)
                except BadTextError as error:
                    failures.append((images.names[place], str(error)))
            rows = np.empty((0, self.n_features), np.float32)
            if found:
                sides = [self._features([*side]) for side in zip(*found, strict=True)]
                rows = sides[0] if len(sides) == 1 else _pairs(*sides)
            yield FeatureBatch(rows, np.asarray(labels, np.int64), failures)

    @abstractmethod
    def _features(self, texts: list[str]) -> Rows:
        """Return a row for each text, which depends on that text alone."""


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
