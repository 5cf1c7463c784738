"""Records as one array: arrays, lists of arrays, or a folder of images."""

import os
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from privfeat._checks import check_choice, require
from privfeat._messages import array_of, without_data
from privfeat.data import LazyFeatures
from privfeat.data.images import FolderImages, LazyImages, StoredImages
from privfeat.data.networks import KNOWN_NETWORKS
from privfeat.data.pixels import BadImageError, list_images, squared
from privfeat.data.splits import not_classes
from privfeat.estimation.inputs import array_of_records, is_table
from privfeat.estimation.labels import Problem

NAMES = "feature_names_in_"  # of a table that a network was fitted to
_AT_ONCE = 256  # files that are decoded together
_IN_MEMORY = 2**30  # bytes
# Bytes minus the first, over the second, are numbers in [-1, 1].
TO_UNIT_RANGE = np.full((2, 1), 127.5, np.float32)


# What is read from disk as it is used.
Lazy: TypeAlias = LazyImages | LazyFeatures


def as_records(X: Any, *, whole: bool = False) -> Any:
    """Return records as an array of shape (n_samples, ...), uint8 or float32.

    ``X`` is an array, or a list of arrays of one shape: images (height, width,
    channels), images of one channel (height, width), or rows of numbers. Images are
    bytes or floats, rows are no bytes. `LazyImages` and `LazyFeatures` stay as they
    are: records that are read when they are indexed. ``whole``: read an HDF5 file once,
    to refuse one that is damaged. TypeError or ValueError if the records are not
    numbers, differ in shape, or hold NaN or infinity.
    """
    if isinstance(X, Lazy):
        if not len(X):
            raise ValueError("X must have at least 1 record, got 0.")
        if whole and isinstance(X, LazyFeatures):
            X.check_finite(slice(None))
        if whole and isinstance(X, StoredImages):  # those of a folder were all decoded
            X.read_once()
        return X
    if isinstance(X, str | os.PathLike):
        raise TypeError(
            "X must hold images, got a path. Pass what "
            "privfeat.networks.read_folder returns for it."
        )
    if isinstance(X, list | tuple):
        kinds = without_data(
            lambda: {(getattr(record, "mode", "L"), np.shape(record)) for record in X}
        )
        if not {mode for mode, _ in kinds} <= {"L", "RGB"}:
            raise ValueError(
                "X must hold images of mode L or RGB, got another. Convert them with "
                "privfeat.data.pixels.as_bytes."
            )
        if len({shape for _, shape in kinds}) > 1:
            raise ValueError("X must hold records of one shape, got several shapes.")
    records = array_of_records(X)
    if records.ndim not in (2, 3, 4) or not records.size:
        raise ValueError(
            "X must have shape (n_samples, height, width, channels), (n_samples, "
            "height, width) or (n_samples, n_features), with at least 1 record of 1 "
            "value."
        )
    if records.dtype.kind not in "biuf":
        raise TypeError("X must hold real numbers, got another type.")
    if records.dtype == np.uint8 and records.ndim == 2:
        # a 256 in one row would make other numbers of the bytes of all
        raise TypeError(
            "X must hold rows of floats, got bytes (uint8), which are for images. Pass "
            "X.astype('float32') in a public range, as X / 127.5 - 1, or the images."
        )
    if records.dtype != np.uint8:
        if records.dtype.kind != "f" and records.ndim > 2:
            raise TypeError(
                f"X must hold images as bytes (uint8) or floats, got {records.dtype}."
            )
        records = array_of(records, np.float32)
        if not np.all(np.isfinite(records)):
            raise ValueError(
                "X must be finite in float32, got NaN, infinity or overflow."
            )
    return records[..., None] if records.ndim == 3 else records


def read_records(X: Any, problem: Problem) -> tuple[Any, NDArray[Any], Problem]:
    """Return records as an array, one of zeros, and the problem with names of columns.

    Raises
    ------
    TypeError, ValueError
        As `as_records`; also if some names are strings and some are not.
    """
    records, named = as_records(X, whole=True), BaseEstimator()
    if not isinstance(X, np.ndarray) and is_table(X):
        without_data(validate_data, named, X, skip_check_array=True)
    if hasattr(named, NAMES):
        problem = replace(
            problem,
            fitted=problem.fitted | {NAMES: named.feature_names_in_},
            public=(*problem.public, "the names of the features"),
        )
    return records, np.zeros((1, *records.shape[1:]), records.dtype), problem


def records_for(model: Any, X: Any) -> Any:
    """Return records as an array, of the shape and the columns a network was fitted to.

    As scikit-learn has it, a table whose columns have other names, or another order, is
    refused, and if one of both has names and the other has none, it warns.

    Raises
    ------
    TypeError, ValueError
        As `as_records`, and for records of another shape or of other columns.
    """
    if is_table(X):
        without_data(validate_data, model, X, reset=False, skip_check_array=True)
    records, shape = as_records(X), model.input_shape_
    if records.shape[1:] != shape:
        raise ValueError(
            f"X must hold records of shape {shape}, got {records.shape[1:]}."
        )
    return records


def pixel_scale(model: Any, weights: Any) -> NDArray[np.float32]:
    """Return mean and deviation of bytes that public weights were made for.

    Of shape (2, 3), one of each channel; without such weights (2, 1), by which bytes
    become numbers in [-1, 1]. So they do with parameters of another fit: a mapping.
    """
    known = KNOWN_NETWORKS.get(model) if isinstance(model, str) else None
    if weights is None or isinstance(weights, Mapping) or known is None:
        return TO_UNIT_RANGE
    return np.array([known.mean, known.std], np.float32) * np.float32(255.0)


class ImageFolder(NamedTuple):
    """Images, and what their folders and files are called.

    Attributes
    ----------
    images : array or LazyImages of shape (n_samples, size, size, channels), uint8
        Sensitive.
    labels : array of shape (n_samples,)
        Places in ``class_names``. Sensitive.
    class_names : list of str
    files : list of str
        ``class/.../name`` of every image. Sensitive.
    """

    images: NDArray[np.uint8] | LazyImages
    labels: NDArray[np.int64]
    class_names: list[str]
    files: list[str]


def read_folder(
    path: str | os.PathLike[str],
    *,
    size: int = 32,
    mode: str = "RGB",
    skip_bad: bool = False,
    lazy: bool | None = False,
    labelled: bool = True,
) -> ImageFolder:
    """Return the images of ``path/<class>/``, their labels, class names and files.

    Files are decoded as `privfeat.data.pixels` says: upright, and 16 bits in full.

    Parameters
    ----------
    path : str or path-like
        A folder with one folder per class, empty ones included; names of classes
        become public.
    size : int
        Images are resized to this side, the shorter one first, by Pillow's bicubic
        filter, and centre-cropped. Default: 32, as CIFAR-10 has it.
    mode : {"RGB", "L"}
        Colours or grey levels. Default: colours, as of CIFAR-10.
    skip_bad : bool
        Leave out images that cannot be decoded, with a warning that names each.
        Default: False, since nobody should lose records unseen.
    lazy : bool or None
        Decode all images once, to find the bad ones while nothing is spent, but keep
        none: a fit decodes those again that a step draws. For folders that are larger
        than memory; fits are the same. Default: False, as a fit is faster; None: where
        they take more than a gibibyte.
    labelled : bool
        Default: True, as a fit needs labels; False for new images, to predict: one
        folder is enough (``path/new/``), and what folders are called means nothing.

    Raises
    ------
    ValueError
        If there are fewer than two classes of labelled images, or no images, or one
        cannot be decoded; or if the folders are those of splits.
        The message names its file: it is for the person who has the files.
    """
    require("read_folder", "PIL", extra="train")
    check_choice("mode", mode, ("RGB", "L"))
    names, folders = list_images(path)
    class_names = [folder for folder in folders if "/" not in folder]
    if len(class_names) < 1 + labelled:
        raise ValueError(
            f"{os.fspath(path)!r} must hold a folder for each of at least 2 classes, "
            f"got {len(class_names)}. Of new images, pass labelled=False, and the "
            "folder that their folder is in."
        )
    names = [file for file in names if "/" in file]  # not beside the class folders
    nested = len(folders) > len(class_names)
    if nested and (mistaken := not_classes(folders)) is not None:
        raise ValueError(
            f"{os.fspath(path)!r} must hold the folders of classes, got some of which "
            f"{mistaken}. Pass the folder of one split."
        )
    if lazy is None:
        lazy = len(names) * size**2 * len(mode) > _IN_MEMORY
    images, files = [], []
    for file, image in _decoded(Path(path), names, size, mode, skip_bad):
        images.extend([] if lazy else [image])
        files.append(file)
    if not files:
        raise ValueError(f"{os.fspath(path)!r} must hold images, got none.")
    number = {name: label for label, name in enumerate(class_names)}
    labels = np.array([number[file.partition("/")[0]] for file in files])
    found = FolderImages(path, files, size, mode) if lazy else np.stack(images)
    return ImageFolder(found, labels, class_names, files)


def _decoded(
    root: Path, files: list[str], size: int, mode: str, skip_bad: bool
) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    """Yield every file that can be decoded, and its image; several are in work."""

    def decoded(file: str) -> NDArray[np.uint8] | BadImageError:
        try:
            return squared(root / file, size=size, mode=mode)
        except BadImageError as error:
            return error

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start in range(0, len(files), _AT_ONCE):
            block = files[start : start + _AT_ONCE]
            for file, image in zip(block, pool.map(decoded, block), strict=True):
                if not isinstance(image, BadImageError):
                    yield file, image
                elif skip_bad:
                    warnings.warn(f"skipped {root / file}: {image}", stacklevel=3)
                else:
                    raise BadImageError(
                        f"{root / file} must be an image, but cannot be decoded "
                        f"({image}). Repair it or move it away; `train` and the "
                        "extraction leave such images out with --skip-bad."
                    ) from image
