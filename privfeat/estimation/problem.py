"""What a fit makes of ``y``, as values."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What a fit makes of ``y``."""

    # (n_samples, ...), sensitive: of classes their numbers, in any order; of a
    # regression what is predicted
    targets: NDArray[np.integer] | NDArray[np.floating]
    n_outputs: int  # scores that a model has of one record
    fitted: dict[str, Any]  # public attributes that the fitted estimator gets
    public: tuple[str, ...]  # what the guarantee assumes known about ``y``
    classes_read: bool = False  # whether the classes were read from ``y``
