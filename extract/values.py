"""What one argument of the command may be: text in, a value or an error out."""

import argparse
from pathlib import Path
from typing import Any

OUTPUT = "output"  # of a network, among its layers


def pair(text: str) -> tuple[str, Any]:
    """Return name and value of ``KEY=VALUE``."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, got {text!r}")
    lowered = value.lower()
    if lowered in ("true", "false", "none"):
        return name, {"true": True, "false": False, "none": None}[lowered]
    for convert in (int, float):
        try:
            return name, convert(value)
        except ValueError:
            continue
    return name, value


def path_argument(text: str) -> Path:
    """Return a path that the system can take."""
    if not text:
        raise argparse.ArgumentTypeError("must be a path, got ''")
    return Path(plain(text))


def plain(text: str) -> str:
    """Return text without null characters."""
    if "\0" in text:
        raise argparse.ArgumentTypeError(f"must hold no null character, got {text!r}")
    return text


def count(text: str) -> int:
    """Return a whole number above zero."""
    if not text.isdecimal() or not int(text) > 0:
        raise argparse.ArgumentTypeError(f"must be a whole number > 0, got {text!r}")
    return int(text)


def layer(text: str) -> int | str:
    """Return the number of a layer, which may count from the end, or ``output``."""
    if text == OUTPUT:
        return text
    if not text.removeprefix("-").isdecimal():
        raise argparse.ArgumentTypeError(
            f"must be a whole number or {OUTPUT!r}, got {text!r}"
        )
    return int(text)


def count_or_zero(text: str) -> int:
    """Return a whole number of at least zero."""
    return 0 if text == "0" else count(text)


def number(text: str) -> float:
    """Return a number below a million in size."""
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from error
    if not abs(value) < 1e6:
        raise argparse.ArgumentTypeError(f"must be finite, got {text!r}")
    return value


def cosine(text: str) -> float:
    """Return the cosine of an angle."""
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from error
    if not -1.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"must be in [-1, 1], got {text!r}")
    return value
