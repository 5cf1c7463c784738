"""What a fit makes of ``y``, as values."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What a fit makes of ``y``.

    Attributes
    ----------
    targets : array of shape (n_samples, ...)
        Of classes their numbers, in any order; of a regression what is predicted.
        Sensitive.
    n_outputs : int
        Scores that a model has of one record.
    fitted : dict
        Public attributes that the fitted estimator gets.
    public : tuple of str
        What the guarantee assumes known about ``y``.
    classes_read : bool, default=False
        Whether the classes were read from ``y``.
    """

    targets: NDArray[np.integer] | NDArray[np.floating]
    n_outputs: int
    fitted: dict[str, Any]
    public: tuple[str, ...]
    classes_read: bool = False
