"""What rows are shifted by: a public array, or a mean that a query releases."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._types import Adjacency, RowScaling
from privfeat.core.accounting.plan import Query
from privfeat.core.bounds import replacement, sensitivity
from privfeat.core.bounds.grid import CLIP_RANGE

# The release of the mean.
MEAN = "feature_mean"
# Part of rho that the mean gets: all other releases have 5 % more noise for it.
SHARE = 0.1
# The constant coordinate that counts records, in units of the norm of a row; it takes
# 11 % of the norm from the features.
COUNT_SCALE = 0.5


def public_center(
    center: Any, n_features: int, row_scaling: RowScaling
) -> NDArray[np.float64]:
    """Return a center that is public, (n_features,): the array given, or zeros.

    TypeError or ValueError if ``center`` is neither a bool nor a finite array of this
    shape, or too long to be a mean of rows of unit norm.
    """
    if isinstance(center, bool | np.bool_):
        return np.zeros(n_features)
    values = np.asarray(center)
    if values.dtype.kind not in "iuf":
        raise TypeError(
            f"center must be a bool or an array of numbers, got {center!r}."
        )
    if values.shape != (n_features,):
        raise ValueError(
            f"center must have shape ({n_features},), got {values.shape}. Pass the "
            "mean of public rows, or True."
        )
    norm = float(np.linalg.norm(values))
    longest = 1.0 + 1e-6 if row_scaling == "unit" else CLIP_RANGE[1]
    if not norm <= longest:
        raise ValueError(
            f"center must have norm at most {longest:.6g}, got {norm:.6g}. Divide each "
            "public row by its norm before the mean, for row_scaling='unit'."
        )
    return values.astype(np.float64)


def mean_query(
    others: Sequence[Query],
    clip_norm: float,
    adjacency: Adjacency,
    row_scaling: RowScaling,
) -> Query:
    """Return the query for the mean; ``others`` are the other releases of the fit.

    The statistic is the sum of the bounded rows with their constant coordinate:
    sensitivity ``clip_norm``, and twice that under replace-one, as of one class sum.
    Next to a row of unit norm the constant is the same in every bounded row, and two of
    them differ by less; a row that is clipped with its constant may have lost it.
    A sampled release costs ``sampling_prob**2`` of a full one, to leading order.
    """
    cost = sum(query.count * query.weight * query.sampling_prob**2 for query in others)
    if row_scaling == "unit":
        features = clip_norm / math.hypot(1.0, COUNT_SCALE)
        bound = replacement.row_sum(features, COUNT_SCALE * features, adjacency)
    else:
        bound = sensitivity.class_sums(clip_norm, adjacency)
    return Query(MEAN, bound, weight=SHARE / (1.0 - SHARE) * cost)
