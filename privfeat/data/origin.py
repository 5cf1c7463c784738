"""Whether the features of two files were made in the same way."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

# Features of other networks, layers or poolings have nothing to do with each other.
NETWORK = ("model", "model_kwargs", "weights_sha256", "pooling", "layers", "pairs")
# Of other pixels, views or cuts they are near, but not what a model was fitted on.
PIXELS = ("resize", "crop", "interpolation", "mean", "std", "views", "max_length")
# What the extractor leaves out where nothing was asked for.
_UNSAID: dict[str, Any] = {"layers": ["output"], "views": ["zoom 1"]}


def made_by(origin: Mapping[str, Any]) -> dict[str, Any]:
    """Return of `FeatureFile.origin` what decides how an image becomes features."""
    return {name: origin[name] for name in (*NETWORK, *PIXELS) if name in origin}


def differing(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    """Return in which of ``NETWORK`` and ``PIXELS`` two origins differ.

    What one of them does not say is not compared: arrays of users say nothing.

    >>> one = {"crop": 128, "pooling": "avg"}
    >>> differing(one, {**one, "views": ["zoom 1", "zoom 1 mirrored"]})
    ['views']
    >>> differing(one, {})
    []
    """
    known = [
        {**_UNSAID, **found} if "pooling" in found else dict(found)
        for found in (one, two)
    ]
    return [
        name
        for name in (*NETWORK, *PIXELS)
        if all(name in found for found in known) and known[0][name] != known[1][name]
    ]


def value(origin: Mapping[str, Any], name: str) -> Any:
    """Return a value of an origin, also one that the extractor left out."""
    return origin.get(name, _UNSAID.get(name))


def digest_of_list(names: Iterable[str], labels: Iterable[int]) -> str:
    """Return the SHA-256 of the lines ``name<TAB>label``."""
    digest = hashlib.sha256()
    for name, label in zip(names, labels, strict=True):
        digest.update(f"{name}\t{label}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
