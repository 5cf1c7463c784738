"""Records as one array: arrays, lists of arrays, or a folder of images."""

import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privfeat._checks import check_choice
from privfeat._extras import require
from privfeat._messages import array_of, without_data
from privfeat.data.networks import KNOWN_NETWORKS
from privfeat.data.pixels import BadImageError, converted, decode, list_images

# Bytes minus the first, over the second, are numbers in [-1, 1].
TO_UNIT_RANGE = np.full((2, 1), 127.5, np.float32)


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
            "privfeat.networks.read_folder returns for it."
        )
    if isinstance(X, list | tuple):
        kinds = without_data(
            lambda: {(_mode(record), np.shape(record)) for record in X}
        )
        if not {mode for mode, _ in kinds} <= {"L", "RGB"}:
            raise ValueError(
                "X must hold images of mode L or RGB, got another. Convert them with "
                "privfeat.data.pixels.as_bytes."
            )
        if len({shape for _, shape in kinds}) > 1:
            raise ValueError("X must hold records of one shape, got several shapes.")
    records = array_of(X)
    if records.ndim not in (2, 3, 4) or not records.size:
        raise ValueError(
            "X must have shape (n_samples, height, width, channels), (n_samples, "
            "height, width) or (n_samples, n_features), with at least 1 record of 1 "
            "value."
        )
    if records.dtype.kind not in "biuf":
        raise TypeError("X must hold real numbers, got another type.")
    if records.dtype != np.uint8:
        if records.dtype.kind != "f" and records.ndim > 2:
            raise TypeError(
                f"X must hold images as bytes (uint8) or floats, got {records.dtype}."
            )
        records = without_data(records.astype, np.float32)
        if not np.all(np.isfinite(records)):
            raise ValueError(
                "X must be finite in float32, got NaN, infinity or overflow."
            )
    return records[..., None] if records.ndim == 3 else records


def _mode(record: Any) -> str:
    """Return the mode of an image of Pillow; "L" of an array."""
    mode: str = getattr(record, "mode", "L")
    return mode


def pixel_scale(model: Any, weights: Any) -> NDArray[np.float32]:
    """Return mean and deviation of bytes that public weights were made for.

    Of shape (2, 3), one of each channel; without such weights (2, 1), by which bytes
    become numbers in [-1, 1].
    """
    known = KNOWN_NETWORKS.get(model) if isinstance(model, str) else None
    if weights is None or known is None:
        return TO_UNIT_RANGE
    return np.array([known.mean, known.std], np.float32) * np.float32(255.0)


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
    path: str | os.PathLike[str],
    *,
    size: int = 32,
    mode: str = "RGB",
    skip_bad: bool = False,
) -> ImageFolder:
    """Return the images of ``path/<class>/``, their labels, class names and files.

    Files are decoded as `privfeat.data.pixels` says: upright, and 16 bits in full.

    Parameters
    ----------
    path : str or path-like
        A folder with one folder per class, empty ones included; names of classes
        become public.
    size : int
        Images are resized to this side, the shorter one first, and centre-cropped.
    mode : {"RGB", "L"}
        Colours or grey levels.
    skip_bad : bool
        Leave out images that cannot be decoded, with a warning that names each.

    Raises
    ------
    ValueError
        If there are fewer than two classes, or no images, or one cannot be decoded.
        The message names its file: it is for the person who has the files.
    """
    require("read_folder", "PIL", extra="train")
    from PIL import ImageOps

    check_choice("mode", mode, ("RGB", "L"))
    names, folders = list_images(path)
    class_names = [folder for folder in folders if "/" not in folder]
    if len(class_names) < 2:
        raise ValueError(
            f"{os.fspath(path)!r} must hold a folder for each of at least 2 classes, "
            f"got {len(class_names)}."
        )
    number = {name: label for label, name in enumerate(class_names)}
    images, labels, files = [], [], []
    for file in names:
        folder, slash, _ = file.partition("/")
        if not slash:  # beside the class folders
            continue
        place = Path(path, file)
        try:
            image = converted(decode(place), mode)
        except BadImageError as error:
            if not skip_bad:
                raise BadImageError(
                    f"{place} must be an image, but cannot be decoded ({error}). "
                    "Repair or remove it, or skip bad images (--skip-bad)."
                ) from error
            warnings.warn(f"skipped {place}: {error}", stacklevel=2)
            continue
        images.append(np.asarray(ImageOps.fit(image, (size, size)), np.uint8))
        labels.append(number[folder])
        files.append(file)
    if not images:
        raise ValueError(f"{os.fspath(path)!r} must hold images, got none.")
    stacked = np.stack(images).reshape(len(images), size, size, -1)
    return ImageFolder(stacked, np.array(labels), class_names, files)
