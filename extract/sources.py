"""One description of images, whether of folders, archives or data sets."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from privfeat.data.origin import digest_of_list

from .arguments import Options
from .errors import ExtractError


@runtime_checkable
class ImageList(Protocol):
    """Images of one split in a fixed order, read by number. Picklable.

    ``names`` are what to call each image in messages. A list may have ``files()``,
    those that hold many images each, for `state_of`; or, where each image has its own,
    ``changed_since(seconds, numbers)``, for `require_unchanged`.
    """

    names: Sequence[str]

    def __len__(self) -> int:
        """Return the number of images."""
        ...

    def load(self, index: int) -> tuple[Any, int]:
        """Return image (PIL, or grey ``uint8`` array) and label of one entry."""
        ...


@dataclass(frozen=True)
class Source:
    """A data set."""

    name: str  # stored as ``dataset`` in the feature file
    splits: dict[str, Any]  # of ImageList, in the order of extraction
    class_names: list[str] | None = None
    # SHA-256 of the file list of each split, where it is known beforehand
    digests: dict[str, str] = field(default_factory=dict)
    unit: str = "image"  # what one row is made of, for messages
    labelled: bool = True  # else all labels are -1

    def close(self) -> None:
        """Close the files that stay open between images."""
        for images in self.splits.values():
            if hasattr(images, "close"):
                images.close()


def state_of(source: Source) -> dict[str, str]:
    """Return digests of the sizes and of the times of files that hold many images.

    A data set that changed has others; a copy has the same sizes. Empty if nothing
    tells the files, as for most data sets of timm, or each image has its own.
    """
    files = [
        file
        for images in source.splits.values()
        for file in getattr(images, "files", tuple)()
    ]
    states = [os.stat(file) if os.path.exists(file) else None for file in files]
    told = {
        "sizes": [state and state.st_size for state in states],
        "times": [state and state.st_mtime_ns for state in states],
    }
    return {
        name: hashlib.sha256(json.dumps(values).encode()).hexdigest()
        for name, values in told.items()
        if values
    }


def require_unchanged(images: Any, split: str, began: float, seen: range) -> None:
    """Raise ExtractError if files of images that have a row are newer than a run."""
    if hasattr(images, "changed_since") and images.changed_since(began, seen):
        raise ExtractError(
            f"split {split!r} must hold the images that have a row already, but some "
            "of their files are newer: records might be there twice. Pass --overwrite."
        )


def digest_of_rows(labels: NDArray[np.int64]) -> str:
    """Return the digest of a split whose images have numbers but no names."""
    return digest_of_list(map(str, range(len(labels))), labels.tolist())


def require_text(source: Source, options: Options) -> None:
    """Raise before the work if the file could not hold a name that it is to hold."""
    names: list[Any] = [*(source.class_names or ()), *source.splits, source.name]
    for network in options.networks:
        names += [network.model, network.pool, network.weights_license]
        names += [network.checkpoint, *network.model_kwargs.values()]
    for name in map(str, names):
        try:
            name.encode()
        except UnicodeEncodeError:
            raise ExtractError(
                "names of folders and arguments must be text in UTF-8, got "
                f"{name!a}. Rename it."
            ) from None


def as_labels(labels: Sequence[int]) -> NDArray[np.int64]:
    """Return labels as an array, empty or not."""
    return np.asarray(labels, np.int64).reshape(-1)
