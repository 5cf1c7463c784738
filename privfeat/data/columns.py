"""Convert batches to the types that a feature file stores."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def as_columns(
    features: NDArray[Any],
    labels: ArrayLike,
    groups: ArrayLike | None,
    *,
    dtype: str,
    n_features: int,
) -> dict[str, NDArray[Any]]:
    """Convert one batch to the stored types; refuse what would change its meaning.

    Parameters
    ----------
    features : ndarray of shape (m, n_features)
        Must be finite as ``dtype``.
    labels : array-like of shape (m,) int, or (m, k) of zeros and ones
        One entry per row.
    groups : array-like of shape (m,) int, or None
        One entry per row.
    dtype : {"float16", "float32"}
        Stored type of the features.
    n_features : int
        Number of columns.

    Returns
    -------
    columns : dict of str to ndarray
        ``features``, ``labels`` and, if given, ``groups``.

    Raises
    ------
    ValueError
        If a shape, type or value does not fit.
    """
    if features.ndim != 2 or features.shape[1] != n_features:
        raise ValueError(
            f"features must have shape (m, {n_features}), got {features.ndim} "
            f"dimensions, the last of {features.shape[-1:]}."
        )
    with np.errstate(over="ignore"):
        stored = np.asarray(features).astype(dtype, copy=False)
    if not np.isfinite(stored).all():
        raise ValueError(
            f"features must be finite as {dtype}, got NaN, infinity or a value above "
            f"{np.finfo(dtype).max:g}. Store them as float32, or check the model."
        )
    columns = {"features": stored}
    given = (
        {"labels": labels} if groups is None else {"labels": labels, "groups": groups}
    )
    for name, values in given.items():
        array = np.asarray(values)
        if array.dtype.kind not in "iub" or array.shape[:1] != stored.shape[:1]:
            raise ValueError(
                f"{name} must be integers, one per row, got another number of them, "
                f"or type {array.dtype}."
            )
        indicator = name == "labels" and array.ndim == 2
        if indicator and not np.isin(array, (0, 1)).all():
            raise ValueError("labels of shape (n, m) must be zeros and ones.")
        columns[name] = array.astype(np.uint8 if indicator else np.int64)
    return columns


def warn_of_zeros(split: str, features: NDArray[Any]) -> bool:
    """Warn of rows that are all zeros, and return whether there are any.

    Said here, where features are made and nothing is promised yet, and never by
    ``fit``: what that says of exact values tells of single records.
    """
    found = not features.any(axis=1).all()
    if found:
        warnings.warn(
            f"some rows of split {split!r} are all zeros: they say nothing about their "
            "labels. See how these features were made.",
            stacklevel=3,
        )
    return found
