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
# What took less time to compile is not kept.
_LEAST_SECONDS = "jax_persistent_cache_min_compile_time_secs"

_lock = Lock()
_least_seconds_around: list[float] = []  # one for each body that runs


@contextmanager
def kept_compiled_code() -> Iterator[None]:
    """Let JAX keep what the body compiles in a folder of the user.

    ``PRIVFEAT_COMPILATION_CACHE`` names another folder, or is ``off``. A cache that
    JAX was given already stays as it is. A folder that cannot be made is no reason to
    fail.

    The body must compile nothing that holds data: code that was compiled for shapes and
    public parameters alone. Nothing else of the process is kept. Functions of the user,
    say, hold every array that they use without being passed it. What other threads
    compile while the body runs is kept as well: JAX has one setting for all.
    """
    with _lock:
        ours = _cache_is_ours()
        if ours:
            _least_seconds_around.append(jax.config.values[_LEAST_SECONDS])
            _set(_LEAST_SECONDS, 0.0)
    try:
        yield
    finally:
        if ours:
            with _lock:
                _set(_LEAST_SECONDS, _least_seconds_around.pop())


@cache
def _cache_is_ours() -> bool:
    """Make the folder and tell JAX of it, to keep nothing in it yet."""
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
