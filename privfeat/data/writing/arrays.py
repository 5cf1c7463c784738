"""Save feature arrays that are in memory as a feature file."""

import os
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from privfeat._checks import check_class_names, check_order
from privfeat._messages import array_of, check_columns
from privfeat.data.lazy import LazyFeatures
from privfeat.data.schema import WITHOUT_DUPLICATES
from privfeat.data.users import check_exact
from privfeat.data.writing.columns import makers_of, numbered, warn_without_users
from privfeat.data.writing.writer import FeatureWriter


def write_features(
    path: str | os.PathLike[str],
    splits: Mapping[
        str, tuple[ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike]
    ],
    *,
    class_names: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    dtype: str | None = None,
    overwrite: bool = False,
) -> None:
    """Save feature arrays of your own as a feature file.

    Parameters
    ----------
    path : str or path-like
        The file to write.
    splits : mapping of str to (features, labels) or (features, labels, groups)
        Features of shape (n, d); labels (n,) int, places in ``class_names``, or texts
        out of it, which alone will do where names are numbers at other places; or (n,
        m) of zeros and ones; groups (n,) int, the user that each row belongs to.
    class_names : sequence of str, optional
        Names of the classes in the order of the labels. Public: all that there can be.
    metadata : mapping of str to JSON-like value
        Whatever is known of the origin of the features.
    dtype : {"float16", "float32"}, optional
        Stored type; by default float32, whatever the arrays have: of an array of halves
        one record decides, which may have more digits.
    overwrite : bool
        Replace an existing file.

    Raises
    ------
    FeatureFileError
        If the file exists and ``overwrite`` is False.
    TypeError, ValueError
        If shapes or types do not fit, a value is not finite, or there is no split.
        Messages hold no data.
    OSError
        If the disk is full or fails.

    Warns
    -----
    PrivacyWarning
        If features of a file that holds users are given without them.
    """
    if class_names is not None:
        check_class_names(class_names)
    for split in splits.values():
        check_columns(features=split[0])
        check_order("labels", split[1], split[0])
        if len(split) == 3:
            check_exact(split[2])
            check_order("groups", split[2], *split[:2])
        warn_without_users(split[0], split[2] if len(split) == 3 else None)
    arrays = {
        name: [
            array_of(rows),
            array_of(numbered(labels, class_names)),
            *map(array_of, users),
        ]
        for name, (rows, labels, *users) in splits.items()
    }
    if not arrays or any(columns[0].ndim != 2 for columns in arrays.values()):
        raise ValueError(
            "splits must hold at least one pair (features of shape (n, d),"
            f" labels), got splits {sorted(arrays)}."
        )
    first = next(iter(arrays.values()))[0]
    begin = partial(
        FeatureWriter,
        path,
        n_features=first.shape[1],
        dtype="float32" if dtype is None else dtype,
        arguments={"writer": "write_features"},
    )
    writer = begin(overwrite=overwrite)
    if writer.resumed:  # an earlier call was killed: start from nothing
        writer.close()
        writer = begin(overwrite=True)
    try:
        with writer:
            for name, (features, labels, *groups) in arrays.items():
                users = groups[0] if groups else None
                writer.append(name, features, labels, groups=users)
            # what stays true of rows that were read of another file
            chosen = {
                name: {WITHOUT_DUPLICATES: list(makers)}
                for name, split in splits.items()
                if (makers := makers_of(split[0]))
            }
            ours = [s[0] for s in splits.values() if isinstance(s[0], LazyFeatures)]
            if any(features.limited for features in ours):
                metadata = {**(metadata or {}), "limit": True}
            writer.finish(metadata, class_names=class_names, split_metadata=chosen)
    except BaseException:
        shutil.rmtree(writer.partial, ignore_errors=True)
        raise
