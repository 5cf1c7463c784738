"""Whose image is whose: a table of users for the images of a folder or an archive."""

import csv
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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
    """Read the users of all images.

    Parameters
    ----------
    path : Path
        CSV with the columns ``file``, a path below ``--data``, and ``user``, any text.
        Rows on other files are left out.
    source : Source
        Its images must have paths: a folder or an archive.

    Raises
    ------
    ExtractError
        If a column, an image or a user is missing, or an image is named twice.
    """
    if not all(hasattr(images, "labels") for images in source.splits.values()):
        raise ExtractError(
            f"--groups must go with a folder or an archive of images, but {source.name}"
            " has no file names."
        )
    try:
        with path.open(newline="", encoding="utf-8-sig") as table:
            rows = list(csv.DictReader(table))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ExtractError(f"--groups must be a CSV file, got {path}.") from error
    if not rows or not {"file", "user"} <= rows[0].keys():
        raise ExtractError(f"--groups must have the columns file and user, got {path}.")
    users = {row["file"]: row["user"] for row in rows}
    wanted = [name for images in source.splits.values() for name in images.names]
    missing = next((name for name in wanted if not users.get(name)), None)
    if missing is not None:
        raise ExtractError(
            "--groups must name the user of every image, by its path below --data, "
            f"but {path} has none for {missing}. Add it, or choose other --splits."
        )
    if len(users) != len(rows):
        raise ExtractError(f"--groups must name each file once, got {path}.")
    number = {user: i for i, user in enumerate(sorted({users[n] for n in wanted}))}
    lines = "".join(f"{name}\t{users[name]}\n" for name in wanted)
    return Groups(
        {split: images.names for split, images in source.splits.items()},
        {
            split: np.array([number[users[name]] for name in images.names], np.int64)
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
