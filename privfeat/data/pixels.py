"""Decode image files, one way for every command: upright, eight bits, grey or RGB.

What a file may hold, and what becomes of it:

- orientation written by a camera (EXIF): applied.
- one bit, grey, RGB of 8 bits: as it is. RGB of 16 bits: Pillow keeps the high byte.
- grey of more than 8 bits: scaled by the largest number that its bits can hold, never
  by its own darkest and brightest pixel. A TIFF may say that 0 is white: it is.
- whole numbers of 32 bits or with a sign, floats: refused, since their range is not
  written in the file.
- transparency (grey, RGB or palette): laid over white.
- palette, CMYK, YCbCr, HSV: converted to RGB as Pillow does.
- several frames or pages: the first.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from privfeat._checks import require
from privfeat._warnings import warn

SUFFIXES = frozenset(
    ".jpg .jpeg .png .bmp .gif .webp .tif .tiff .ppm .pgm .pbm".split()
)
# The kinds of files that are read, of which no two begin alike. Pillow's own order in
# which it asks its kinds follows from the files that it opened before, and some of them
# take a file that is of another kind as well: one record would change later ones.
KINDS = ("JPEG", "PNG", "BMP", "GIF", "TIFF", "PPM", "WEBP")
# Stored beside features: of another rule, equal files give other features.
DECODING = "upright; full range of bits; zero as tagged; transparency over white"
_BITS_PER_SAMPLE, _PHOTOMETRIC, _SAMPLE_FORMAT = 258, 262, 339  # tags of TIFF
_ZERO_IS_WHITE, _SIGNED = 0, 2  # their values


class BadImageError(ValueError):
    """One image cannot be decoded."""


def is_image(path: str) -> bool:
    """Whether a path names an image file that is not hidden."""
    suffix = PurePosixPath(path).suffix.lower()
    return not is_hidden(path) and suffix in SUFFIXES


def is_hidden(path: str) -> bool:
    """Whether a part of a path begins with a dot, or is what macOS adds to archives."""
    parts = PurePosixPath(path).parts
    return any(part.startswith(".") or part == "__MACOSX" for part in parts)


def list_images(root: str | os.PathLike[str]) -> tuple[list[str], list[str]]:
    """Return all images below a folder, and all folders, as sorted relative paths.

    Links are followed, but not back to a folder that they are in: each turn of such a
    circle would be one more record of the same image. PrivacyWarning if links lead to
    one image under two names, which are two records; UserWarning if files in folders
    are left out, by their endings.
    """
    images, folders, others = {}, [], set[str]()
    for name, identity in listed_below(Path(root)):
        if identity is None:
            folders.append(name)
        elif is_image(name):
            images[name] = identity
        elif "/" in name and not is_hidden(name):
            others.add(PurePosixPath(name).suffix or "none")
    warn_of_second_names(images)
    if others:
        warn(
            f"files in folders of {os.fspath(root)} are left out: by their endings "
            f"({', '.join(sorted(others)[:5])}) they are no images. Convert those that "
            "are.",
            UserWarning,
        )
    return sorted(images), sorted(name for name in folders if not is_hidden(name))


def warn_of_second_names(images: Mapping[str, Any]) -> None:
    """Warn with PrivacyWarning if two names have one identity: they are two records."""
    seen: dict[Any, str] = {}
    for name in sorted(images):
        other = seen.setdefault(images[name], name)
        if other != name:
            warn(
                f"{other} and {name} are one image: it counts under each name, and "
                "each is protected on its own. Remove the links, or name the user of "
                "every image."
            )
            return


def listed_below(
    root: Path, below: str = "", around: tuple[str, ...] = ()
) -> Iterator[tuple[str, Any]]:
    """Yield the relative path of all that is below a folder, links followed.

    Beside it None for a folder, and what all names of a file share for a file: from the
    listing where that says it, since to look at each file takes long on a network.
    """
    folder = Path(root, below)
    around += (os.path.realpath(folder),)
    device = folder.stat().st_dev
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        name = f"{below}/{entry.name}" if below else entry.name
        state = None
        if entry.is_symlink():
            with suppress(OSError):  # it leads nowhere: to decode it says so
                state = entry.stat()
        same = device, entry.inode()
        is_folder = entry.is_dir(follow_symlinks=False)
        if state is not None:
            same = state.st_dev, state.st_ino
            is_folder = stat.S_ISDIR(state.st_mode)
        if not is_folder:
            yield name, same
        elif os.path.realpath(entry.path) not in around:
            yield name, None
            yield from listed_below(root, name, around)


@contextmanager
def _refused_if_damaged() -> Iterator[None]:
    """Turn whatever Pillow raises into `BadImageError`: its plugins raise anything.

    A file may be of any of the kinds, whatever its name says.
    """
    try:
        yield
    except (BadImageError, ImportError):  # of Pillow itself
        raise
    except Exception as error:
        raise BadImageError(str(error) or type(error).__name__) from error


@_refused_if_damaged()
def decode(file: str | os.PathLike[str] | IO[bytes]) -> Any:
    """Return the upright image of a file, a PIL image in mode ``"L"`` or ``"RGB"``.

    What it is follows from the file alone. BadImageError if it is missing, truncated,
    damaged, of none of the `KINDS`, or of numbers whose range is not known; ImportError
    if Pillow is not installed.
    """
    require("an image", "PIL", extra="extract")
    from PIL import Image

    with Image.open(file, formats=KINDS) as image:
        image.load()
        return as_bytes(image)


def load_kinds() -> None:
    """Load all kinds of Pillow, before another package opens files of records.

    Then no file changes the order in which they are asked, as `decode` has it.
    """
    from PIL import Image

    Image.preinit()
    Image.init()


@_refused_if_damaged()
def as_bytes(image: Any) -> Any:
    """Return a PIL image upright and in mode ``"L"`` or ``"RGB"``, see the top.

    BadImageError if it cannot be decoded, or there is no way from its mode to one of
    the two.
    """
    from PIL import Image

    depth, tags = _depth(image), _tags(image)  # before it is turned: that drops them
    image = _upright(image)
    if depth is not None:
        levels = np.asarray(image).astype(np.float64) * (255.0 / (2**depth - 1))
        if tags.get(_PHOTOMETRIC) == _ZERO_IS_WHITE:  # which Pillow minds for 8 bits
            levels = 255.0 - levels
        return Image.fromarray(np.rint(levels).clip(0, 255).astype(np.uint8))
    if image.mode in ("I", "F") or _SIGNED in tags.get(_SAMPLE_FORMAT, ()):
        raise BadImageError(
            f"its numbers ({image.mode} of Pillow) have no known range; save it with "
            "8 bits, or with 16 bits without a sign"
        )
    grey = image.mode in ("1", "L", "LA", "La")
    if image.has_transparency_data:
        image = converted(image, "RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    return converted(image, "L" if grey else "RGB")


@_refused_if_damaged()
def converted(image: Any, mode: str) -> Any:
    """Return a PIL image in another colour mode.

    BadImageError if there is no way from its mode to that one.
    """
    return image if image.mode == mode else image.convert(mode)


def _upright(image: Any) -> Any:
    from PIL import ImageOps

    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # noqa: BLE001 - damaged metadata of an image that is whole
        return image


def _depth(image: Any) -> int | None:
    """Return the bits of a grey image of more than 8, None for all others."""
    if image.mode == "I" and image.format in ("PNG", "PPM"):
        return 16  # Pillow scales what a PGM declares to 16 bits
    if not image.mode.startswith("I;16"):
        return None
    return int(_tags(image).get(_BITS_PER_SAMPLE, (16,))[0])


def _tags(image: Any) -> Mapping[int, Any]:
    """Return the tags of a TIFF, none of others."""
    return dict(getattr(image, "tag_v2", {}))


def squared(file: str | os.PathLike[str], *, size: int, mode: str) -> NDArray[np.uint8]:
    """Return an image file as an array of shape (size, size, channels).

    The shorter side is resized first, and the image is centre-cropped. BadImageError if
    it cannot be decoded.
    """
    from PIL import ImageOps

    image = ImageOps.fit(converted(decode(file), mode), (size, size))
    return np.asarray(image, np.uint8).reshape(size, size, len(mode))
