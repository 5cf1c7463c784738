"""Compiled arithmetic kept from one process to the next."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock

import jax

VARIABLE = "PRIVFEAT_COMPILATION_CACHE"
_FOLDER = "jax_compilation_cache_dir"
# The least time that a kept compilation took.
_LEAST_SECONDS = "jax_persistent_cache_min_compile_time_secs"

_lock = Lock()
_before: list[float] = []  # the setting around each body whose code is kept
_apart: list[None] = []  # one for each part of them whose code is not
_held: list[float] = []  # the setting that stands again after those parts


@contextmanager
def kept_compiled_code() -> Iterator[None]:
    """Let JAX keep what the body compiles in a folder of the user.

    ``PRIVFEAT_COMPILATION_CACHE`` names another folder, or is ``off``. A cache that
    JAX has already stays; without a folder nothing is kept.

    The body must compile nothing that holds data: compiled functions hold each array
    that they use without being passed it. What other threads compile while the body
    runs is kept as well, since JAX has one setting for all; nothing else is.
    """
    with _lock:
        ours = _cache_is_ours()
        if ours:
            _before.append(0.0 if _apart else jax.config.values[_LEAST_SECONDS])
            if not _apart:
                _set(_LEAST_SECONDS, 0.0)
    try:
        yield
    finally:
        if ours:
            with _lock:
                around = _before.pop()
                if _apart:
                    _held[0] = around
                else:
                    _set(_LEAST_SECONDS, around)


@contextmanager
def code_of_others() -> Iterator[None]:
    """Keep nothing that the body compiles, though it is part of one that is kept.

    A function of the user, such as ``on_step``, may hold private rows. What other
    threads compile meanwhile is not kept either.
    """
    with _lock:
        ours = bool(_before)
        if ours:
            if not _apart:
                _held.append(jax.config.values[_LEAST_SECONDS])
                _set(_LEAST_SECONDS, math.inf)
            _apart.append(None)
    try:
        yield
    finally:
        if ours:
            with _lock:
                _apart.pop()
                if not _apart:
                    _set(_LEAST_SECONDS, _held.pop())


def folder_of_compiled_code() -> str | None:
    """Return where fits keep what they compile, None if nowhere."""
    _cache_is_ours()
    found: str | None = jax.config.values[_FOLDER]
    return found


@cache
def _cache_is_ours() -> bool:
    """Make the folder and give it to JAX, which keeps nothing in it yet."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen == "off" or jax.config.values[_FOLDER]:
        return False
    try:
        root = chosen or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(root) if chosen else Path(root, "privfeat", "compiled")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # the latter where nobody has a home
        return False
    _set(_LEAST_SECONDS, math.inf)
    _set(_FOLDER, str(folder))
    return True


def _set(name: str, value: float | str) -> None:
    jax.config.update(name, value)  # type: ignore[no-untyped-call]
