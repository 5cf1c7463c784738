"""Convert batches to the types that a feature file stores."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfeat._checks import check_order
from privfeat._messages import array_of, check_columns, without_data
from privfeat.data.users import ids_of


def as_columns(
    features: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike | None,
    *,
    dtype: str,
    n_features: int,
) -> dict[str, NDArray[Any]]:
    """Convert one batch to the stored types; refuse what would change its meaning.

    Shapes are (m, n_features), (m,) or (m, k), and (m,). ``groups`` are left out where
    they are None. TypeError or ValueError if a shape, type or value does not fit.
    Messages hold no data.
    """
    check_columns(features=features)
    check_order("labels", labels, features)
    check_order("groups", groups, features, labels)
    rows = array_of(features)
    if rows.ndim != 2 or rows.shape[1] != n_features:
        got = f"(m, {rows.shape[1]})" if rows.ndim == 2 else f"{rows.ndim} dimensions"
        raise ValueError(f"features must have shape (m, {n_features}), got {got}.")
    if rows.dtype.kind == "c":
        raise TypeError("features must be real, got complex numbers.")
    stored = without_data(rows.astype, dtype, copy=False)
    if not np.isfinite(stored).all():
        raise ValueError(
            f"features must be finite as {dtype}, got NaN, infinity or a value above "
            f"{np.finfo(dtype).max:g}. Store them as float32, or check the model."
        )
    columns = {"features": stored}
    given = {"labels": labels} | ({} if groups is None else {"groups": groups})
    for name, values in given.items():
        array = array_of(values)
        indicator = name == "labels" and array.ndim == 2
        one_a_row = array.shape[:1] == stored.shape[:1]
        if array.dtype.kind not in "iub" or not (
            one_a_row and (indicator or array.ndim == 1)
        ):
            raise ValueError(
                f"{name} must be integers, one per row, got another shape or type."
            )
        if array.dtype == np.uint64 and (array >= 2**63).any():
            raise ValueError(f"{name} must be below 2**63, got a larger number.")
        if name == "groups":
            array = ids_of(array)
        if indicator and not np.isin(array, (0, 1)).all():
            raise ValueError("labels of shape (n, m) must be zeros and ones.")
        columns[name] = array.astype(np.uint8 if indicator else np.int64)
    return columns


def warn_of_zeros(split: str, features: NDArray[Any]) -> bool:
    """Warn of rows that are all zeros, and return whether there are any.

    ``fit`` never warns of it: what it says of exact values would reveal records.
    """
    found = not features.any(axis=1).all()
    if found:
        warnings.warn(
            f"some rows of split {split!r} are all zeros: they say nothing about their "
            "labels. See how these features were made.",
            stacklevel=3,
        )
    return found
