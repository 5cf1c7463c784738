"""Constructor parameters as JSON, and back, without running code from a file."""

from collections.abc import Mapping
from contextlib import suppress
from numbers import Integral, Real
from typing import Any

import numpy as np

# Bounds on what a file can ask for; parameters of estimators need far less.
_DEPTH = 32
_ITEMS = 2**20
# What all objects of an array may be, and the array that says the same.
_PLAIN = (str, str), ((bool, np.bool_), bool), (Integral, np.int64), (Real, np.float64)


def encode(name: str, value: Any) -> Any:
    """Return the JSON form of the parameter ``name``.

    What JSON has keeps its form; a one-key object marks every other type. TypeError if
    the value holds anything but numbers, strings, None and their containers.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Real) and not isinstance(value, int):  # a fraction, say
        value = float(value)
    if hasattr(value, "__array__"):  # a table or a column as well
        value = np.asarray(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": str(value)}
    if isinstance(value, list):
        return [encode(name, item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(name, item) for item in value]}
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    if isinstance(value, Mapping):
        pairs = [[encode(name, k), encode(name, v)] for k, v in value.items()]
        return {"dict": pairs}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufUO":
        items = (as_plain(name, value) if value.dtype.hasobject else value).tolist()
        return {"array": [value.dtype.str, encode(name, items)]}
    raise TypeError(
        f"{name} must be made of numbers, strings and their lists, tuples, "
        f"dictionaries or arrays to be saved, got {type(value).__name__}."
    )


def decode(value: Any) -> Any:
    """Return the parameter that ``encode`` wrote.

    TypeError or ValueError if it cannot have: what is read must be written the same.
    """
    decoded = _decoded(value, _DEPTH)
    if encode("parameters", decoded) != value:
        raise ValueError("parameters must be as they are written, got another form.")
    return decoded


def _decoded(value: Any, depth: int) -> Any:
    """Return a value from its JSON form; ValueError for what is none."""
    if not depth:
        raise ValueError(f"parameters must be nested at most {_DEPTH} deep.")
    if isinstance(value, list):
        return [_decoded(item, depth - 1) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "float":
        return float(content)
    if kind == "tuple":
        return tuple(_decoded(item, depth - 1) for item in content)
    if kind == "range":
        found = range(*content)
        if not all(type(item) is int for item in content) or found[_ITEMS:]:
            raise ValueError(f"parameters must hold ranges of at most {_ITEMS}.")
        return found
    if kind == "dict":
        return {_decoded(k, depth - 1): _decoded(v, depth - 1) for k, v in content}
    if kind == "array":
        dtype = np.dtype(content[0])
        if dtype.kind not in "biufUO" or dtype.itemsize > _ITEMS:
            raise ValueError("parameters must hold arrays of numbers or strings.")
        return np.array(_decoded(content[1], depth - 1), dtype=dtype)
    raise ValueError(f"parameters must be of a known kind, got {kind!r}.")


def as_plain(name: str, array: np.ndarray) -> np.ndarray:
    """Return an array of objects as one of text or of numbers; TypeError of others."""
    for kind, dtype in _PLAIN:
        if all(isinstance(item, kind) for item in array.ravel()):
            with suppress(OverflowError):  # beyond 64 bits
                made = array.astype(dtype)
                if np.all(made == array):
                    return made
    raise TypeError(f"{name} must hold numbers or strings to be saved.")
