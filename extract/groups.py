"""Whose image is whose: a table of users for the images of a folder or an archive."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privfeat.data.users import read_users

from .errors import ExtractError
from .sources import Source


@dataclass(frozen=True)
class Groups:
    """The user of every image.

    Attributes
    ----------
    names : mapping of str to sequence of str
        For each split the files, in the order of extraction.
    numbers : mapping of str to ndarray of shape (n_images,) int64
        For each split the user of each file.
    digest : str
        SHA-256 of the users by image: a run goes on with the same table alone.
    """

    names: Mapping[str, Sequence[str]]
    numbers: Mapping[str, NDArray[np.int64]]
    digest: str


def read_groups(path: Path, source: Source) -> Groups:
    """Read the users of all images, see `privfeat.data.users.read_users`.

    Raises
    ------
    ExtractError
        If the images have no paths, a column, an image or a user is missing, or an
        image is named twice.
    """
    if not all(hasattr(images, "labels") for images in source.splits.values()):
        raise ExtractError(
            f"--groups must go with a folder or an archive of images, but {source.name}"
            " has no file names."
        )
    files = [name for images in source.splits.values() for name in images.names]
    try:
        users = read_users(path, files)
    except ValueError as error:
        raise ExtractError(str(error)) from error
    user_of = dict(zip(files, users, strict=True))
    number = {user: i for i, user in enumerate(sorted(set(users)))}
    lines = "".join(f"{name}\t{user}\n" for name, user in user_of.items())
    return Groups(
        {split: images.names for split, images in source.splits.items()},
        {
            split: np.array([number[user_of[name]] for name in images.names], np.int64)
            for split, images in source.splits.items()
        },
        hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest(),
    )


def rows_of(
    groups: Groups | None,
    split: str,
    seen: Sequence[int] = (),
    skipped: Collection[str] = (),
) -> NDArray[np.int64] | None:
    """Return the users of the images ``seen`` that were not skipped by name."""
    if groups is None:
        return None
    names = groups.names[split]
    return groups.numbers[split][[i for i in seen if names[i] not in skipped]]
