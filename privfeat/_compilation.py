"""Compiled arithmetic kept from one process to the next."""

import os
from functools import cache
from pathlib import Path

import jax

VARIABLE = "PRIVFEAT_COMPILATION_CACHE"


@cache
def keep_compiled_code() -> None:
    """Let JAX keep what it compiles in a folder of the user, from the first fit on.

    ``PRIVFEAT_COMPILATION_CACHE`` names another folder, or is ``off``. A cache that
    JAX was given already stays as it is. Compiled code holds shapes and public
    parameters, no data. A folder that cannot be made is no reason to fail.
    """
    chosen = os.environ.get(VARIABLE, "")
    if chosen == "off" or jax.config.values["jax_compilation_cache_dir"]:
        return
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(chosen or Path(root) / "privfeat" / "compiled")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return
    for name, value in (
        ("jax_compilation_cache_dir", str(folder)),
        ("jax_persistent_cache_min_compile_time_secs", 0.0),
    ):
        jax.config.update(name, value)  # type: ignore[no-untyped-call]
