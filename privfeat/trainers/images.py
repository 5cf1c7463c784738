"""Records as one array: arrays, lists of arrays, or a folder of images."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privfeat._checks import check_choice
from privfeat._messages import array_of, without_data

SUFFIXES = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".webp"})


def as_records(X: Any) -> NDArray[Any]:
    """Return records as an array of shape (n_samples, ...), uint8 or float32.

    Parameters
    ----------
    X : array, or sequence of arrays of one shape
        Images (height, width, channels), images of one channel (height, width), or rows
        of numbers. Whole numbers must be bytes.

    Raises
    ------
    TypeError, ValueError
        If the records are not numbers, differ in shape, or hold NaN or infinity.
    """
    if isinstance(X, str | os.PathLike):
        raise TypeError(
            "X must hold images, got a path. Pass what "
            "privfeat.trainers.read_folder returns for it."
        )
    if isinstance(X, list | tuple) and len(without_data(_shapes, X)) > 1:
        raise ValueError("X must hold records of one shape, got several shapes.")
    records = array_of(X)
    if records.ndim not in (2, 3, 4) or not records.size:
        raise ValueError(
            "X must have shape (n_samples, height, width, channels), (n_samples, "
            "height, width) or (n_samples, n_features), with at least 1 record of 1 "
            "value."
        )
    if records.dtype == np.uint8:
        return records[..., None] if records.ndim == 3 else records
    if records.dtype.kind not in "biuf":
        raise TypeError("X must hold real numbers, got another type.")
    if records.dtype.kind != "f" and records.ndim > 2:
        raise TypeError(
            f"X must hold images as bytes (uint8) or floats, got {records.dtype}."
        )
    with np.errstate(over="ignore"):
        records = records.astype(np.float32)
    if not np.all(np.isfinite(records)):
        raise ValueError("X must be finite in float32, got NaN, infinity or overflow.")
    return records[..., None] if records.ndim == 3 else records


def _shapes(X: Any) -> set[tuple[int, ...]]:
    return {np.shape(record) for record in X}


def to_inputs(records: NDArray[Any]) -> NDArray[np.float32]:
    """Return records as the network takes them: bytes become numbers in [-1, 1]."""
    if records.dtype == np.uint8:
        return (records.astype(np.float32) - 127.5) / 127.5
    return records


class ImageFolder(NamedTuple):
    """Images, and what their folders and files are called.

    Attributes
    ----------
    images : array of shape (n_samples, size, size, channels), uint8
        Sensitive.
    labels : array of shape (n_samples,)
        Places in ``class_names``. Sensitive.
    class_names : list of str
    files : list of str
        ``class/.../name`` of every image. Sensitive.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    class_names: list[str]
    files: list[str]


def read_folder(
    path: str | os.PathLike[str], *, size: int = 32, mode: str = "RGB"
) -> ImageFolder:
    """Return the images of ``path/<class>/``, their labels, class names and files.

    Parameters
    ----------
    path : str or path-like
        A folder with one folder per class; names of classes become public.
    size : int
        Images are resized to this side, the shorter one first, and centre-cropped.
    mode : {"RGB", "L"}
        Colours or grey levels.

    Raises
    ------
    ValueError
        If there are fewer than two classes, or no images.
    """
    from PIL import Image, ImageOps

    check_choice("mode", mode, ("RGB", "L"))
    folders = sorted(entry for entry in Path(path).iterdir() if entry.is_dir())
    if len(folders) < 2:
        raise ValueError(
            f"{os.fspath(path)!r} must hold a folder for each of at least 2 classes, "
            f"got {len(folders)}."
        )
    images, labels, files = [], [], []
    for label, folder in enumerate(folders):
        for file in sorted(folder.rglob("*")):
            if file.suffix.lower() not in SUFFIXES:
                continue
            with Image.open(file) as image:
                square = ImageOps.fit(image.convert(mode), (size, size))
            images.append(np.asarray(square, np.uint8))
            labels.append(label)
            files.append(file.relative_to(path).as_posix())
    if not images:
        raise ValueError(f"{os.fspath(path)!r} must hold images, got none.")
    stacked = np.stack(images)
    if stacked.ndim == 3:
        stacked = stacked[..., None]
    class_names = [folder.name for folder in folders]
    return ImageFolder(stacked, np.array(labels), class_names, files)
