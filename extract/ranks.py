"""One process among several that share an extraction: which one, and its images.

The processes do not talk to each other. What each has to do follows from ``RANK`` and
``WORLD_SIZE`` alone, and what the others did is seen in the folder of the shards, so
any of them can die, come back, or run on its own.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from .errors import ExtractError


@dataclass(frozen=True)
class Rank:
    """The place of this process among those that extract the same data."""

    number: int = 0  # from 0
    count: int = 1
    # the same on this host: which GPU to take, and how to share the cores
    local: int = 0
    local_count: int = 1

    @property
    def alone(self) -> bool:
        """Whether there is no other process."""
        return self.count == 1

    def share(self, total: int) -> tuple[int, int]:
        """Return the first image of this process and the one to stop before.

        The ranges of all processes follow one another, so joined rows have the order
        of a single process; their lengths differ by one at most.
        """
        return (
            total * self.number // self.count,
            total * (self.number + 1) // self.count,
        )

    def target(self, out: Path) -> Path:
        """Return the file that this process writes: ``out`` itself if it is alone."""
        return out if self.alone else self.targets(out)[self.number]

    def targets(self, out: Path) -> list[Path]:
        """Return the shards of all processes."""
        folder = out.with_name(out.name + ".shards")
        return [
            folder / f"{number:05d}-of-{self.count:05d}.h5"
            for number in range(1, self.count + 1)
        ]


def read_rank(environ: Mapping[str, str]) -> Rank:
    """Return what torchrun, or another launcher, says in the environment.

    ``RANK`` and ``WORLD_SIZE``, and with them ``LOCAL_RANK`` (by default ``RANK``) and
    ``LOCAL_WORLD_SIZE`` (1). ExtractError if one of the first two is missing, or a
    value is not possible.
    """
    if "RANK" not in environ and "WORLD_SIZE" not in environ:
        return Rank()
    count = _whole(environ, "WORLD_SIZE", low=1)
    number = _whole(environ, "RANK", high=count - 1)
    local_count = _whole(environ, "LOCAL_WORLD_SIZE", 1, low=1)
    return Rank(number, count, _whole(environ, "LOCAL_RANK", number), local_count)


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Let one process of all that use ``folder`` in; the others wait."""
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "source.lock"):
        yield


def _whole(
    environ: Mapping[str, str],
    name: str,
    default: int | None = None,
    *,
    low: int = 0,
    high: int = 2**20,
) -> int:
    """Return the whole number in a variable of the environment, or the default."""
    text = environ.get(name, "" if default is None else str(default))
    if not text.isdecimal() or not low <= int(text) <= high:
        raise ExtractError(
            f"{name} must be a whole number in [{low}, {high}], got {text!r}. RANK and "
            "WORLD_SIZE are set by torchrun; unset both to run one process."
        )
    return int(text)
