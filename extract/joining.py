"""Join the shards of several processes as soon as all are there."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from privfeat.data import join_features, open_features
from privfeat.data.reader import open_checked
from privfeat.data.schema import read_attributes

from .errors import ExtractError
from .ranks import Rank
from .reports import report_gaps
from .sources import digest_of_rows


def is_made_by(path: Path, origin: dict[str, Any]) -> bool:
    """Whether a complete feature file has these arguments, and is this shard.

    Its own shards, if any, are not looked at. ``origin`` holds ``arguments``, and
    ``shard`` of a shard, as stored.
    """
    with open_checked(os.fspath(path)) as file:
        stored = read_attributes(file)
    return all(
        _without_host(stored.get(key)) == _without_host(origin.get(key))
        for key in ("arguments", "shard")
    )


def _without_host(found: Any) -> Any:
    """Return the description of a shard without the kind of host that made it."""
    if not isinstance(found, dict):
        return found
    return {key: value for key, value in found.items() if key != "kind_of_host"}


def require_made_by(path: Path, origin: dict[str, Any]) -> None:
    """Accept a complete file only if these arguments would give it again."""
    if not is_made_by(path, origin):
        raise ExtractError(
            f"{path} must be of these arguments to be kept, but was made with others. "
            "Choose another name, or pass --overwrite."
        )


def join_shards(
    out: Path, rank: Rank, origin: dict[str, Any], digests: dict[str, str]
) -> str:
    """Write the joined file if all shards are complete; return what was done, in words.

    Several processes may do so at once: each writes the same file and puts it in place
    in one step. The last one to complete its shard finds all others. ``origin`` holds
    ``arguments`` and ``shard`` of this process's shard, and ``digests`` the SHA-256 of
    the file list of each split, where it was known beforehand.

    ExtractError if there is not one row of a split, or if shards were made on hosts of
    two kinds: one more image moves others to the next shard. FeatureFileError as for
    `privfeat.data.join_features`.
    """
    targets = rank.targets(out)
    # The folder is listed, since a network file system may have kept in mind for a
    # while that a file was not there.
    present = {entry.name for entry in os.scandir(targets[0].parent)}
    missing = [
        target.name
        for number, target in enumerate(targets, 1)
        if target.name not in present
        or not is_made_by(
            target, {**origin, "shard": {**origin["shard"], "number": number}}
        )
    ]
    if missing:
        return f"{len(missing)} of {rank.count} shards to come, first {missing[0]}"
    _require_one_kind(targets)
    metadata = {}
    for split in origin["arguments"]["splits"]:
        labels = np.concatenate([open_features(path)[split].y for path in targets])
        if not len(labels):
            raise ExtractError(
                f"split {split!r} must hold an image that can be decoded, but holds "
                "none."
            )
        metadata[split] = {
            "file_list_sha256": digests.get(split) or digest_of_rows(labels)
        }
    join_features(out, targets, split_metadata=metadata, overwrite=True)
    for leftover in targets[0].parent.glob("source*"):
        leftover.unlink(missing_ok=True)
    report_gaps(out)
    with open_features(out) as file:
        return f"joined {rank.count} shards into {out}, {file.metadata['n_rows']} rows"


def _require_one_kind(targets: list[Path]) -> None:
    kinds: dict[Any, str] = {}
    for target in targets:
        with open_checked(os.fspath(target)) as file:
            kinds.setdefault(
                read_attributes(file)["shard"].get("kind_of_host"), target.name
            )
    if len(kinds) > 1:
        raise ExtractError(
            "all shards must be made on hosts of one kind: processor, GPU, number of "
            "cores, versions of libraries, and options such as --batch-size. "
            f"{' and '.join(kinds.values())} were not, and would round an image in two "
            "ways. Make them again on such hosts, with --overwrite."
        )
