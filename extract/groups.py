"""The user of each row: of images by a table of them, of texts by a column."""

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
    """The user of every image."""

    names: Mapping[str, Sequence[str]]  # of files, by split, in the order of extraction
    numbers: Mapping[str, NDArray[np.int64]]  # the user of each file, by split
    digest: str  # SHA-256 of users by image: a run goes on with the same table alone


def read_groups(path: Path, source: Source) -> Groups:
    """Read the users of all images, see `privfeat.data.users.read_users`.

    ExtractError if the images have no paths, a column, an image or a user is missing,
    or an image is named twice.
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
    names = {split: images.names for split, images in source.splits.items()}
    return _numbered(names, {s: [user_of[name] for name in names[s]] for s in names})


def groups_of(source: Source, path: Path | None) -> Groups | None:
    """Return the users of a table of texts, or those of ``path``; None without."""
    if path is not None:
        return read_groups(path, source)
    users = {
        split: getattr(rows, "users", None) for split, rows in source.splits.items()
    }
    known = {split: found for split, found in users.items() if found is not None}
    return (
        _numbered({s: source.splits[s].names for s in known}, known) if known else None
    )


def _numbered(
    names: Mapping[str, Sequence[str]], users: Mapping[str, Sequence[str]]
) -> Groups:
    """Return users as numbers, in the order of their names."""
    every = sorted({user for found in users.values() for user in found})
    number = {user: i for i, user in enumerate(every)}
    digest = hashlib.sha256()
    for split, found in users.items():
        for name, user in zip(names[split], found, strict=True):
            digest.update(f"{name}\t".encode("utf-8", "surrogateescape"))
            digest.update(f"{user}\n".encode("utf-8", "surrogatepass"))
    numbers = {s: np.array([number[u] for u in users[s]], np.int64) for s in users}
    return Groups(names, numbers, digest.hexdigest())


def rows_of(
    groups: Groups | None,
    split: str,
    seen: Sequence[int] = (),
    skipped: Collection[str] = (),
) -> NDArray[np.int64] | None:
    """Return the users of the images ``seen`` that were not skipped by name."""
    if groups is None or split not in groups.names:
        return None
    names = groups.names[split]
    return groups.numbers[split][[i for i in seen if names[i] not in skipped]]
