"""Convert batches to the types that a feature file stores."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfeat._checks import check_order
from privfeat._messages import array_of, check_columns
from privfeat._warnings import warn
from privfeat.data.lazy import LazyFeatures
from privfeat.data.users import check_exact, ids_of


def numbered(labels: ArrayLike, class_names: Sequence[str] | None) -> ArrayLike:
    """Return the place of each label in ``class_names``; labels that are numbers alone.

    The list is public. Numbers that are made of the labels themselves are not: those of
    ``pandas.factorize`` follow the first records, and with the only record of a class
    all later ones of ``LabelEncoder`` move.

    ValueError if a label is none of the names, or a number where a name reads as one
    that is not its place: a reader makes numbers of codes unless one record has a word.
    """
    array = array_of(labels)
    if class_names is None or array.ndim != 1:
        return labels
    if array.dtype.kind not in "OTU":
        apart = {n for i, n in enumerate(class_names) if n.strip() != str(i)}
        words = {"true", "false"} if array.dtype.kind == "b" else set()
        if any(name.strip().lower() in words or _is_number(name) for name in apart):
            raise ValueError(
                "labels must be texts where class_names are numbers or truth values, "
                "got another type: 1 may be the name or the place. Read their column "
                "as text, as privfeat.data.read_table does."
            )
        return labels
    places: dict[str | None, int] = {n: i for i, n in enumerate(class_names)}
    names = (label if isinstance(label, str) else None for label in array.tolist())
    found = np.array([places.get(name, -1) for name in names], np.int64)
    if (found < 0).any():
        raise ValueError(
            "labels must be names of class_names, got another label. Pass every "
            "possible name."
        )
    return found


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


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
    _refuse_chosen(features)
    warn_without_users(features, groups)
    check_columns(features=features)
    if groups is not None:
        check_exact(groups)
    check_order("labels", labels, features)
    check_order("groups", groups, features, labels)
    rows = array_of(features)
    if rows.ndim != 2 or rows.shape[1] != n_features:
        got = f"(m, {rows.shape[1]})" if rows.ndim == 2 else f"{rows.ndim} dimensions"
        raise ValueError(f"features must have shape (m, {n_features}), got {got}.")
    if rows.dtype.kind == "c":
        raise TypeError("features must be real, got complex numbers.")
    stored = array_of(rows, np.dtype(dtype))
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
                f"{name} must be integers, one per row, got another shape or type. "
                "Number names by a public list of them, as write_features does with "
                "class_names, and not by what the rows hold."
            )
        if array.dtype == np.uint64 and (array >= 2**63).any():
            raise ValueError(f"{name} must be below 2**63, got a larger number.")
        if name == "groups":
            array = ids_of(array)
        if indicator and not np.isin(array, (0, 1)).all():
            raise ValueError("labels of shape (n, m) must be zeros and ones.")
        columns[name] = array.astype(np.uint8 if indicator else np.int64)
    return columns


def warn_without_users(features: Any, groups: Any) -> None:
    """Warn of rows of a file that says whose each row is, if no groups are given."""
    # no attribute of an object of others is asked for: it may raise what it holds
    if groups is None and isinstance(features, LazyFeatures) and features.has_groups:
        warn(
            "features are of a file that says whose each row is, but no groups were "
            "given: fits of the new file cannot protect all rows of a user. Pass "
            "(split.X, split.y, split.groups)."
        )


def makers_of(features: Any) -> tuple[str, ...]:
    """Return whose records chose the rows of a feature file; none of other rows."""
    return features.chosen_by if isinstance(features, LazyFeatures) else ()


def _refuse_chosen(features: Any) -> None:
    """Raise ValueError for rows of a file that holds a part of its records.

    Other records decide which these are; pieces do not hand on that mark.
    """
    ours = isinstance(features, LazyFeatures)
    if ours and (features.limited or features.chosen_by):
        raise ValueError(
            "features must not be of a file that overlap --remove or --limit wrote, "
            "since other records chose its rows. Pass the split to write_features, "
            "which hands that on."
        )


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
