"""Data sets that timm knows by name, and reads by number: torch/ and hfds/.

Its others are streams (hfids/, tfds/, wds/): a damaged record took all after it along,
and nothing told how many there should have been.
"""

import operator
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privfeat.data.pixels import BadImageError, as_bytes, decode, load_kinds

from .errors import ExtractError, one_line
from .ranks import one_at_a_time
from .sources import Source


class Numbered:
    """Names of images that have none: ``train[17]``."""

    def __init__(self, split: str, count: int) -> None:
        self.split, self.count = split, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return Numbered(self.split, len(range(*key.indices(self.count))))
        if not 0 <= key < self.count:
            raise IndexError(key)
        return f"{self.split}[{key}]"


class TimmImages:
    """One split of a data set."""

    def __init__(self, split: str, dataset: Any) -> None:
        self.dataset = dataset
        self.names = Numbered(split, len(dataset))

    def __len__(self) -> int:
        return len(self.dataset)

    def files(self) -> list[str]:
        """Return the files that Hugging Face's library keeps, of others none."""
        listed = getattr(getattr(self.dataset, "reader", None), "dataset", None)
        return [file["filename"] for file in getattr(listed, "cache_files", ())]

    def load(self, index: int) -> tuple[Any, int]:
        """Return the decoded image and its label.

        timm's own access puts the next image in the place of a bad one, so its reader
        is asked instead where there is one.
        """
        reader = getattr(self.dataset, "reader", None)
        load_kinds()
        try:
            if reader is None:
                found, label = self.dataset[index]
            else:
                found, label = reader[index][:2]
            image = as_bytes(found) if hasattr(found, "convert") else _decoded(found)
        except Exception as error:  # of any reader of timm, hub or torchvision
            raise BadImageError(str(error) or type(error).__name__) from error
        return image, _number(label)


KINDS_OF_TIMM = ("torch", "hfds")
# Names of whole splits. The libraries behind timm read more in them: parts by place,
# such as train[:300], of which one record less lets another one in, and sums of splits.
_WHOLE = re.compile(r"[\w.-]+")
# Folders of images, which `open_folder` reads.
_FOLDERS = ("image_folder", "folder")


def open_timm(
    data: str, data_dir: Path | None, splits: Sequence[str] | None, workspace: Path
) -> Source:
    """Open the splits (train and test by default) of a data set by its timm name.

    One process at a time does so, since it may download the data. ExtractError if it
    cannot be found, downloaded or read, or a split is a part of one.
    """
    for split in splits or ():
        if not _WHOLE.fullmatch(split):
            raise ExtractError(
                f"--splits must name whole splits of {data}, got {split!r}: which "
                "records a part holds follows from others. Name the split; for a trial "
                "on the first records pass --limit."
            )
    try:
        from timm.data.dataset_factory import create_dataset
    except ImportError as error:
        raise ExtractError(
            f"--data {data} needs timm, which is not installed ({error}). Run pip "
            "install 'privfeat[extract]'."
        ) from error
    if data.lower().startswith("torch/") and data_dir is None:
        raise ExtractError(
            f"--data {data} needs --data-dir, the folder where it is or is "
            "downloaded to."
        )
    # timm cuts torch/x/folder so too
    if data.lower().startswith("torch/") and data.lower().split("/", 2)[-1] in _FOLDERS:
        raise ExtractError(
            f"--data must be the folder itself, got {data}: each split would number "
            "its own classes, and one that is missing be all images. Pass --data "
            f"{data_dir}."
        )
    load_kinds()
    opened: dict[str, Any] = {}
    names: list[list[str] | None] = []
    for split in splits or ("train", "test"):
        try:
            with one_at_a_time(workspace):
                dataset = create_dataset(
                    data,
                    root=None if data_dir is None else str(data_dir),
                    split=split,
                    download=True,
                    search_split=True,
                )
                if hasattr(dataset, "loader"):  # of a folder, by torchvision
                    dataset.loader = decode
        except (
            OSError,
            RuntimeError,
            ValueError,
            KeyError,
            TypeError,
            AssertionError,
            ImportError,
            NameError,
        ) as error:
            raise ExtractError(
                f"--data {data} must be a data set that can be read or downloaded, but "
                f"split {split!r} failed: {one_line(error)}"
            ) from error
        if _is_of_folder(dataset):
            raise ExtractError(
                f"--data must be the folder itself, got {data}: Hugging Face's library "
                "would number the classes by the images that are there, so that one "
                "image changes the labels of others. Pass the folder, or download it."
            )
        names.append(_class_names(dataset))
        if names[-1] != names[0]:
            raise ExtractError(
                f"--data {data} must have one list of classes, but that of split "
                f"{split!r} is another. Extract its splits one by one."
            )
        opened[split] = TimmImages(split, dataset)
    return Source(name=data, splits=opened, class_names=names[0])


def _is_of_folder(dataset: Any) -> bool:
    """Whether Hugging Face's library found the classes in the names of folders."""
    reader = getattr(dataset, "reader", None)
    info = getattr(getattr(reader, "dataset", None), "info", None)
    kind = getattr(info, "builder_name", None)
    return str(kind).endswith("folder")


def _class_names(dataset: Any) -> list[str] | None:
    """Return the names that the data set gives its classes, if any."""
    names = getattr(dataset, "classes", None)
    if names is None:
        mapping = getattr(getattr(dataset, "reader", None), "class_to_idx", None)
        names = sorted(mapping, key=mapping.get) if mapping else None
    return [str(name) for name in names] if names else None


def _decoded(file: Any) -> Any:
    with file:
        return decode(file)


def _number(label: Any) -> int:
    """Return the label as an integer, -1 if there is none.

    ExtractError for a text or a fraction, which names no class.
    """
    try:
        return -1 if label is None else operator.index(label)
    except TypeError:
        raise ExtractError(
            "labels of --data must be whole numbers, the classes by their order, got "
            f"{type(label).__name__}. Write the images into folders of their classes."
        ) from None
