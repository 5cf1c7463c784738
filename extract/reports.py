"""What the command warns of: gaps in what it wrote, and shards that it left alone."""

from pathlib import Path

from privfeat.data import open_features
from privfeat.data.splits import CLASSES, find_gaps

from .errors import say
from .ranks import Rank


def report_gaps(path: Path) -> None:
    """Say what may be amiss with a complete file; none of it is stored."""
    with open_features(path) as file:
        rows = {f"split {name!r}": file[name] for name in file if name != CLASSES}
        for sentence in find_gaps(rows):
            say(f"warning: {sentence}")


def report_unused_shards(out: Path, rank: Rank) -> None:
    """Say which shards are not of this number of processes; nothing reads them."""
    own = rank.targets(out)
    for path in sorted(own[0].parent.glob("*-of-*.h5")):
        if rank.number == 0 and path not in own:
            say(
                f"warning: {path} is not used, since it is of another WORLD_SIZE than "
                f"{rank.count}. Remove it, or run with its WORLD_SIZE."
            )
