"""How much memory this process may use: that of the machine, its container, a limit."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

# Control groups, and the file that says in which this process is.
_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
# What a group may take, and takes, in both versions of them.
_FILES = (
    ("memory.max", "memory.current"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes"),
)
# Limits of a process (``ulimit``), and where ``statm`` has the pages that count.
_ULIMITS = {"RLIMIT_AS": 0, "RLIMIT_DATA": 5}


def memory_bytes() -> float:
    """Return what there is, used or not; inf if nobody knows."""
    return min([_pages("SC_PHYS_PAGES"), *(limit for limit, _ in _limits())])


def check_room(what: str, n_bytes: float, remedy: str) -> None:
    """Raise ValueError for what has no room, whatever else the machine does.

    The message says no size: one may be the number of records.
    """
    if n_bytes > memory_bytes():
        raise ValueError(f"{what} must fit into memory, and does not. {remedy}")


def has_room(n_bytes: float) -> bool:
    """Return whether so much leaves a quarter of what there is to everything else."""
    return n_bytes <= 0.75 * memory_bytes()


def free_bytes() -> float:
    """Return what is left of it, at least 0; inf if nobody knows."""
    left = [limit - used for limit, used in _limits()]
    return max(0.0, min([_pages("SC_AVPHYS_PAGES"), *left]))


def _pages(name: str) -> float:
    with suppress(AttributeError, OSError, ValueError):
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf(name))
    return math.inf


def _limits() -> Iterator[tuple[float, float]]:
    """Yield each limit, and what is used of it, in bytes."""
    for folder in _groups():
        for names in _FILES:
            with suppress(OSError, ValueError):  # "max" is no number
                limit, used = (
                    int((folder / name).read_text(encoding="ascii")) for name in names
                )
                yield float(limit), float(used)
    with suppress(ImportError, OSError):  # elsewhere than on Linux
        import resource

        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
        for name, place in _ULIMITS.items():
            limit, _ = resource.getrlimit(getattr(resource, name))
            if limit != resource.RLIM_INFINITY:
                yield float(limit), float(pages[place]) * resource.getpagesize()


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
