"""One description of images, whether of folders, archives or data sets."""

from collections.abc import Iterator, Sequence
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

    ``names`` are what to call each image in messages.
    """

    names: Sequence[str]

    def __len__(self) -> int:
        """Return the number of images."""
        ...

    def load(self, index: int) -> tuple[Any, int]:
        """Return image (PIL, or grey ``uint8`` array) and label of one entry."""
        ...


class ImageStream(Protocol):
    """Images of one split that come in a fixed order and only so."""

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        """Yield (image, label)."""
        ...


@dataclass(frozen=True)
class Source:
    """A data set."""

    name: str  # stored as ``dataset`` in the feature file
    splits: dict[str, Any]  # ImageList or ImageStream, in the order of extraction
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
