"""Public rows: read in parts, and not the records of a fit, as far as can be seen."""

from collections import Counter
from collections.abc import Iterator
from os.path import samefile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from privfeat._messages import array_of
from privfeat.data.lazy import LazyFeatures
from privfeat.data.reader import FeatureSplit, open_features

_ROWS = 4096  # that are read at once
# Different rows of a table that two tables may have by chance.
_FEW = 100


def rows_of(public: Any) -> Any:
    """Return what is read by rows."""
    if isinstance(public, FeatureSplit):
        return public.X
    as_it_is = isinstance(public, LazyFeatures) or issparse(public)
    return public if as_it_is else array_of(public)


def finite_blocks(public: Any) -> Iterator[NDArray[Any]]:
    """Yield all rows in parts; ValueError if they hold NaN or infinity."""
    rows = rows_of(public)
    for start in range(0, len(rows), _ROWS):
        block = np.asarray(rows[start : start + _ROWS])
        if not np.all(np.isfinite(block)):
            raise ValueError("public must be finite, got NaN or infinity.")
        yield block


def check_apart(public: Any, X: Any, *, name: str = "public") -> None:
    """Raise ValueError if both are one object, one memory or rows of one file.

    Or if private records, of whatever fit, chose these rows by their near-duplicates:
    a mark names the file of these records, which may be in memory or another file as
    well. A copy, which ``clone`` makes too, is not found. ``name`` is that of the
    public rows.
    """
    own = rows_of(public)
    if getattr(own, "chosen_by", ()):
        raise ValueError(
            f"{name} must not be chosen by private records, got a split without their "
            "near-duplicates. The missing rows reveal them: pass the whole "
            f"split, or drop {name}."
        )
    if public is X or _share(own, X):
        raise ValueError(
            f"{name} must not be the records of the fit, got their file or memory. "
            "The guarantee does not cover public rows: pass others, in a copy."
        )


def share_rows(split: Any, private: Any) -> bool:
    """Return whether two splits are one, or have a shard, or a copy, in common.

    Of rows in memory: whether most of those of one are rows of the other.
    """
    if not (isinstance(split, FeatureSplit) and isinstance(private, FeatureSplit)):
        return _mostly_common(split.X, private.X)
    own, other = split.X, private.X
    if samefile(own.path, other.path) and own.dataset == other.dataset:
        return True
    if _images(split) is not None and _images(split) == _images(private):
        return True
    return not _checksums(split).isdisjoint(_checksums(private))


def _mostly_common(X: Any, Y: Any) -> bool:
    """Return whether half of the different rows of one matrix are rows of the other.

    Or whether all are, as often as there, in whatever order. Few different rows, such
    as those of categories alone, are in any two tables.
    """
    rows, others = (
        Counter(row.tobytes() for row in np.ascontiguousarray(M)) for M in (X, Y)
    )
    if rows == others:
        return True
    fewer = min(len(rows), len(others))
    return fewer > _FEW and 2 * len(rows.keys() & others.keys()) >= fewer


def _images(split: FeatureSplit) -> tuple[Any, ...] | None:
    """Return which images an extracted split is of, by their names and labels.

    Another type, precision or view makes other features of them.
    """
    listed = split.metadata.get("file_list_sha256")
    dataset = open_features(split.X.path).origin.get("dataset")
    return None if listed is None else (dataset, split.name, listed)


def _checksums(split: FeatureSplit) -> set[int]:
    """Return the checksums of a split's features, of each shard where it is joined."""
    shards = open_features(split.X.path).shards
    parts = [open_features(shard)[split.name] for shard in shards] or [split]
    found = (part.metadata.get("features_crc32") for part in parts if len(part))
    return {checksum for checksum in found if checksum is not None}


def _share(own: Any, X: Any) -> bool:
    n_files = isinstance(own, LazyFeatures) + isinstance(X, LazyFeatures)
    if n_files == 2:
        return bool(own.shares_rows(X))
    if n_files or issparse(own) or issparse(X):
        return False
    return bool(np.may_share_memory(own, array_of(X)))
