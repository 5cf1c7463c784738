"""Decode one image, and tell a bad image from any other trouble."""

import struct
from pathlib import Path
from typing import IO, Any


class BadImageError(Exception):
    """One image cannot be decoded."""


def decode(file: Path | IO[bytes]) -> Any:
    """Return a fully decoded PIL image.

    Raises
    ------
    BadImageError
        If the file is missing, truncated, damaged or not an image.
    """
    from PIL import Image

    try:
        with Image.open(file) as image:
            image.load()
    except (
        OSError,
        SyntaxError,
        ValueError,
        EOFError,
        struct.error,
        Image.DecompressionBombError,
    ) as error:
        raise BadImageError(str(error) or type(error).__name__) from error
    return image  # its pixels stay when its file is closed


def converted(image: Any, mode: str) -> Any:
    """Return a PIL image in another colour mode.

    Raises
    ------
    BadImageError
        If there is no way from its mode to that one.
    """
    try:
        return image.convert(mode)
    except (OSError, ValueError) as error:
        raise BadImageError(str(error) or type(error).__name__) from error
