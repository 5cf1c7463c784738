"""What an extractor hands to the writer."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class FeatureBatch:
    """Features of some consecutive images.

    Attributes
    ----------
    features : ndarray of shape (m, n_features)
        One row per decoded image.
    labels : ndarray of shape (m,), int64
        Their labels.
    failures : list of (str, str)
        Name and reason of each image that gave no row.
    """

    features: NDArray[Any]
    labels: NDArray[np.int64]
    failures: list[tuple[str, str]] = field(default_factory=list)

    @property
    def n_seen(self) -> int:
        """Images dealt with."""
        return len(self.features) + len(self.failures)
