"""What an extractor hands to the writer."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class FeatureBatch:
    """Features of some consecutive images, one row per image that was decoded."""

    features: NDArray[Any]  # (m, n_features)
    labels: NDArray[np.int64]  # (m,)
    # name and reason of each image that gave no row
    failures: list[tuple[str, str]] = field(default_factory=list)

    @property
    def n_seen(self) -> int:
        """Images dealt with."""
        return len(self.features) + len(self.failures)
