"""Images on disk, of which only those are read that are asked for.

A folder of image files, or a dataset of an HDF5 file. Both are indexed like a read-only
array of bytes, so that a fit holds the images of a step alone in memory.
"""

import math
import os
from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray

from privfeat._files import NOT_WHOLE, is_whole
from privfeat.data.lazy import OnDisk, gathered
from privfeat.data.pixels import BadImageError, squared
from privfeat.data.schema import (
    FeatureFileError,
    chunk_rows,
    open_hdf5,
    refused_if_damaged,
)

_MUST = "be an HDF5 file with images"


class LazyImages(OnDisk):
    """Images on disk as a read-only array of bytes, read when they are asked for.

    Parameters
    ----------
    shape : tuple of int
        (n_samples, height, width, channels).

    Notes
    -----
    An image that is asked for twice in one index is read once. Threads may share an
    instance, and it can be pickled, by path. ``numpy.asarray(images)`` reads all.
    """

    ndim = 4
    dtype = np.dtype(np.uint8)

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape})"

    def __getitem__(self, key: Any) -> NDArray[np.uint8]:
        """Return images by a slice, a whole number, or an array of these.

        Raises
        ------
        IndexError
            If the key is something else, or an image is not there.
        """
        numbers = np.arange(len(self))[key] if isinstance(key, slice) else key
        numbers = np.asarray(numbers)
        if numbers.dtype.kind not in "iu":
            raise IndexError("images must be indexed by a slice or whole numbers.")
        if numbers.size and not (
            -len(self) <= numbers.min() and numbers.max() < len(self)
        ):
            raise IndexError("images must be indexed by numbers of those there are.")
        wanted, places = np.unique(numbers % max(len(self), 1), return_inverse=True)
        images = self._read(wanted.astype(np.intp))
        return images[places.reshape(numbers.shape)]

    @abstractmethod
    def _read(self, numbers: NDArray[np.intp]) -> NDArray[np.uint8]:
        """Return the images of these numbers, which increase."""


class FolderImages(LazyImages):
    """The image files of a folder, decoded and resized as ``read_folder`` does.

    ``files`` are paths below ``root``, one for each image.
    """

    def __init__(
        self, root: str | os.PathLike[str], files: Sequence[str], size: int, mode: str
    ) -> None:
        super().__init__((len(files), size, size, len(mode)))
        # a copy: a list that its owner sorts later would give images other labels
        self.root, self.files = os.path.abspath(root), tuple(files)
        self._decode = partial(squared, size=size, mode=mode)

    def _read(self, numbers: NDArray[np.intp]) -> NDArray[np.uint8]:
        """Return images by their numbers, decoded in threads, (n, height, ...)."""
        images = np.empty((len(numbers), *self.shape[1:]), np.uint8)
        places = [Path(self.root, self.files[number]) for number in numbers]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for image, found in zip(
                images, pool.map(partial(_or_named, self._decode), places), strict=True
            ):
                image[...] = found
        return images


@dataclass(eq=False, repr=False)
class StoredImages(LazyImages):
    """A dataset of an HDF5 file, opened at the first read, once in a process.

    The ``shape`` has a last axis also where the file has none; ``has_groups`` says
    whether the file says whose each image is. `_written` must return ``written`` where
    that is given: labels and users were read of that file.
    """

    path: str
    dataset: str
    shape: tuple[int, ...]
    has_groups: bool = False
    written: tuple[int, ...] | None = None

    _pid = -1  # of the process that opened the file

    def __post_init__(self) -> None:
        self.path = os.path.abspath(self.path)

    def __reduce__(self) -> tuple[type["StoredImages"], tuple[Any, ...]]:
        return StoredImages, tuple(getattr(self, one.name) for one in fields(self))

    def read_once(self) -> None:
        """Read all images and keep none: FeatureFileError if one cannot be read.

        So that nothing is spent by then; a step of a fit would find it too late.
        """
        few = chunk_rows(len(self), math.prod(self.shape[1:]))
        for start in range(0, len(self), few):
            self[start : start + few]

    def _read(self, numbers: NDArray[np.intp]) -> NDArray[np.uint8]:
        """Return images by their numbers; FeatureFileError if the file was changed."""
        with refused_if_damaged(self.path, _MUST, "Copy it again."):
            if self._pid != os.getpid():
                same = self.written in (None, _written(self.path))
                self._images = h5py.File(self.path, "r")[self.dataset]
                self._pid = os.getpid() if same else -1
            if self._pid < 0 or shape_of(self._images) != self.shape:
                raise FeatureFileError(
                    f"{self.path} must hold {self.dataset!r} as it was opened, but was "
                    "changed. Open it again."
                )
            images = gathered(self._images, numbers)
        return images.reshape(len(numbers), *self.shape[1:])


class ImageFile(NamedTuple):
    """A split of an HDF5 file with images.

    Attributes
    ----------
    images : LazyImages of shape (n_samples, height, width, channels), uint8
        Sensitive.
    labels : array of shape (n_samples,)
        Sensitive.
    class_names : list of str, or None
        Where the file names them, ``labels`` are places in it.
    groups : array of shape (n_samples,), or None
        The user of each image, where the file says it. Sensitive.
    """

    images: StoredImages
    labels: NDArray[Any]
    class_names: list[str] | None
    groups: NDArray[Any] | None


def open_images(
    path: str | os.PathLike[str],
    *,
    images: str = "train/images",
    labels: str = "train/labels",
) -> ImageFile:
    """Return images and labels of an HDF5 file; the images are not read yet.

    Beside the labels a dataset ``groups`` may say whose each image is. ``fit`` warns if
    it is not passed on.

    Parameters
    ----------
    path : str or path-like
        Names of classes are read from its dataset ``class_names``, if it has one.
    images : str
        A dataset of shape (n_samples, height, width), or with one or three channels as
        a last axis, of type uint8. Chunks of one image, or a few, are read fastest.
    labels : str
        A dataset of shape (n_samples,).

    Raises
    ------
    FeatureFileError
        If the file cannot be read, or does not hold these. The message shows no data.
    """
    path = os.fspath(path)
    with (
        open_hdf5(path, f"must {_MUST}", "Check the path.") as file,
        refused_if_damaged(path, _MUST, "Copy it again."),
    ):
        written = _written(path)
        for name in (images, labels):
            if not isinstance(file.get(name), h5py.Dataset):
                raise FeatureFileError(
                    f"{path} must hold a dataset {name!r}, but does not. Name another."
                )
        shape = shape_of(file[images])
        if shape is None or len(file[labels].shape) != 1:
            raise FeatureFileError(
                f"{path} must hold bytes of shape (n, height, width, 1 or 3) in "
                f"{images!r} and one label of each in {labels!r}, but holds others."
            )
        users = file[labels].parent.get("groups")
        columns = [file[labels], *([] if users is None else [users])]
        if not all(map(is_whole, (file[images], *columns))):
            raise FeatureFileError(
                f"{path} must hold its images, labels and users whole, got {NOT_WHOLE}"
            )
        if any(each.shape != shape[:1] for each in columns) or not shape[0]:
            raise FeatureFileError(
                f"{path} must hold as many labels in {labels!r}, and groups if there "
                f"are any, as images in {images!r}, at least one, but does not."
            )
        names = file.get("class_names")
        text = names.asstr()[()].tolist() if isinstance(names, h5py.Dataset) else None
        found, *groups = map(_column, columns)
    stored = StoredImages(path, images, shape, bool(groups), written)
    return ImageFile(stored, found, text, groups[0] if groups else None)


def _written(path: str) -> tuple[int, int]:
    """Return the size of a file, and when it was written."""
    state = os.stat(path)
    return state.st_size, state.st_mtime_ns


def _column(dataset: Any) -> NDArray[Any]:
    """Return the values of one column, text as strings."""
    is_text = h5py.check_string_dtype(dataset.dtype) is not None
    values: NDArray[Any] = (dataset.asstr() if is_text else dataset)[()]
    return values.astype(str) if is_text else values


def has_test(path: str | os.PathLike[str], train: str, test: str) -> bool:
    """Return whether an HDF5 file has a test; FeatureFileError if it is ``train``."""
    with open_hdf5(os.fspath(path), f"must {_MUST}", "Check the path.") as file:
        if test in file and file[train] == file[test]:
            raise FeatureFileError(
                f"{path} must not hold one dataset as {train!r} and {test!r}: an "
                "accuracy on training images says something about them."
            )
        return test in file


def shape_of(dataset: Any) -> tuple[int, ...] | None:
    """Return (n, height, width, channels) of a dataset of images, None of another."""
    shape = (*dataset.shape, 1) if dataset.ndim == 3 else tuple(dataset.shape)
    is_image = len(shape) == 4 and shape[3] in (1, 3) and dataset.dtype == np.uint8
    return shape if is_image else None


def _or_named(decode: Any, place: Path) -> NDArray[np.uint8]:
    """Return the decoded image; what is raised names the file, for its owner."""
    try:
        found: NDArray[np.uint8] = decode(place)
    except BadImageError as error:
        raise BadImageError(
            f"{place} must be an image that can be decoded, whenever it is read, but "
            f"cannot ({error}). Put it back if it has changed, else repair it or move "
            "it away."
        ) from error
    return found
