"""How much memory this process may use: that of the machine, its container, a limit."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

# Control groups, and the file that says in which this process is.
_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
# What a group may take, in both versions of them.
_FILES = ("memory.max", "memory.limit_in_bytes")
_ULIMITS = ("RLIMIT_AS", "RLIMIT_DATA")  # limits of a process


def memory_bytes() -> float:
    """Return what there is, used or not; inf if nobody knows."""
    return min([_physical(), *_limits()])


def check_room(what: str, n_bytes: float, remedy: str) -> None:
    """Raise ValueError for what has no room, whatever else the machine does.

    The message says no size: one may be the number of records.
    """
    if n_bytes > memory_bytes():
        raise ValueError(f"{what} must fit into memory, and does not. {remedy}")


def has_room(n_bytes: float) -> bool:
    """Return whether so much leaves a quarter of what there is to everything else."""
    return n_bytes <= 0.75 * memory_bytes()


def _physical() -> float:
    with suppress(AttributeError, OSError, ValueError):
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return math.inf


def _limits() -> Iterator[float]:
    """Yield each limit in bytes."""
    for folder in _groups():
        for name in _FILES:
            with suppress(OSError, ValueError):  # "max" is no number
                yield float((folder / name).read_text(encoding="ascii"))
    with suppress(ImportError):  # elsewhere than on Unix
        import resource

        for name in _ULIMITS:
            limit, _ = resource.getrlimit(getattr(resource, name))
            if limit != resource.RLIM_INFINITY:
                yield float(limit)


def _groups() -> Iterator[Path]:
    """Yield the groups of this process, and those around them."""
    own, (top, file) = {Path("/")}, _GROUPS
    with suppress(OSError, IndexError):
        for line in file.read_text(encoding="utf-8").splitlines():
            own.add(Path("/", line.split(":", 2)[2]))
    for place in own:
        for group in (place, *place.parents):
            for root in (top, top / "memory"):
                yield root / group.relative_to("/")
