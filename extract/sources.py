"""Where images come from: one description for folders, archives and data sets."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .arguments import Options
from .errors import ExtractError


@runtime_checkable
class ImageList(Protocol):
    """Images of one split in a fixed order, read by number. Picklable.

    Attributes
    ----------
    names : sequence of str
        What to call each image in messages.
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
    """A data set.

    Attributes
    ----------
    name : str
        Stored as ``dataset`` in the feature file.
    splits : dict of str to ImageList or ImageStream
        In the order of extraction.
    class_names : list of str or None
        Names of the labels.
    digests : dict of str to str
        SHA-256 of the file list of each split, where it is known beforehand.
    """

    name: str
    splits: dict[str, Any]
    class_names: list[str] | None = None
    digests: dict[str, str] = field(default_factory=dict)

    def close(self) -> None:
        """Close the files that stay open between images."""
        for images in self.splits.values():
            if hasattr(images, "close"):
                images.close()


def digest_of_list(names: Iterable[str], labels: Iterable[int]) -> str:
    """Return the SHA-256 of the lines ``name<TAB>label``."""
    digest = hashlib.sha256()
    for name, label in zip(names, labels, strict=True):
        digest.update(f"{name}\t{label}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def digest_of_rows(labels: NDArray[np.int64]) -> str:
    """Return the digest of a split whose images have numbers but no names."""
    return digest_of_list(map(str, range(len(labels))), labels.tolist())


def open_source(
    data: str,
    *,
    data_dir: Path | None,
    splits: Sequence[str] | None,
    workspace: Path,
) -> Source:
    """Find the images that ``--data`` names.

    Parameters
    ----------
    data : str
        ``digits``, a folder, an archive, or a data set of timm (``torch/cifar10``).
    data_dir : Path or None
        Where timm's data sets are, or are downloaded to.
    splits : sequence of str or None
        Splits to extract; None takes those that are there.
    workspace : Path
        Folder for what has to be unpacked, the same for all processes.

    Raises
    ------
    ExtractError
        If there is no such data, or no image in it.
    """
    path = Path(data)
    if data == "digits":
        from .digits import open_digits

        return open_digits(splits)
    if path.is_dir():
        from .folder import open_folder

        return open_folder(path, splits)
    if path.is_file():
        from .archive import open_archive

        return open_archive(path, splits, workspace)
    prefix = data.split("/", 1)[0].lower()
    if prefix in ("torch", "hfds", "hfids", "tfds", "wds") and "/" in data:
        from .timm_data import open_timm

        return open_timm(data, data_dir, splits, workspace)
    raise ExtractError(
        "--data must be a folder, an archive, 'digits', or a data set such as "
        f"torch/cifar10 or hfds/uoft-cs/cifar10, got {data!r}. There is no such file."
    )


def require_text(source: Source, options: Options) -> None:
    """Raise before the work if the file could not hold a name that it is to hold."""
    names = [*(source.class_names or ()), *source.splits, source.name, options.model]
    names += [options.weights_license, options.checkpoint]
    for name in map(str, [*names, *options.model_kwargs.values()]):
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
