"""The extraction itself: from a source through an extractor into a feature file."""

import hashlib
import json
import os
import shutil
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from privfeat._files import check_no_ledger
from privfeat._process import processor
from privfeat._progress import LINE, Progress, make_bar
from privfeat._warnings import STDERR, warn
from privfeat.data import FeatureFileError, FeatureWriter, open_features
from privfeat.data.pixels import DECODING
from privfeat.data.writing.parts import find_parts, partial_folder

from .arguments import Options
from .errors import ExtractError, say
from .extractors import Extractor, make_extractor, versions_of
from .groups import Groups, groups_of, rows_of
from .joining import join_shards, require_made_by
from .opening import open_source
from .ranks import Rank, read_rank
from .reports import report_gaps, report_unused_shards
from .sources import Source, digest_of_rows, require_text, require_unchanged, state_of

# Beginnings of variables by which libraries choose how they multiply.
_OF_MATHS = (
    *("ATEN_", "CUBLAS", "CUDNN_", "DNNL_", "MKL_", "NPY_", "NVIDIA_TF32"),
    *("ONEDNN_", "OPENBLAS_", "TORCH_"),
)
# What is done to a row before its features are made.
_DONE = {"image": "decoded", "text": "used"}
_ONE = {"image": "an image that can be decoded", "text": "a text that can be used"}


def extract(options: Options) -> str:
    """Write the feature file that the options ask for, or this process's share of it.

    Returns one line: rows, time, speed, place. Where ``RANK`` and ``WORLD_SIZE`` are
    set, as by torchrun, every process writes a shard, and the one that finds all
    shards complete joins them.

    Raises ExtractError, FeatureFileError or OSError, with a message for the user. The
    output does not exist then; a partial folder is kept if it holds features.
    """
    rank = read_rank(os.environ)
    target = rank.target(options.out)
    workspace = partial_folder(options.out) if rank.alone else target.parent
    if not options.out.parent.is_dir():
        raise ExtractError(
            f"--out must lie in an existing folder, but there is no "
            f"{options.out.parent}."
        )
    if options.out.is_dir():
        raise ExtractError(f"--out must be a file, but {options.out} is a folder.")
    try:
        check_no_ledger(options.out)
    except ValueError as error:
        raise ExtractError(f"--out: {error}") from None
    # Among several processes one may be started again when the others are done.
    again = options.overwrite or options.resume or not rank.alone
    if options.out.exists() and not again:
        raise ExtractError(
            f"--out must not exist yet, but {options.out} does. Choose another name, "
            "or pass --overwrite to replace it."
        )
    if options.overwrite and not rank.alone:
        target.unlink(missing_ok=True)  # the others must not join an old shard
    found = workspace.exists()  # then it is, or may be, of another run
    try:
        source = open_source(options, workspace)
        with closing(source):
            return _extract(options, source, make_extractor(options, rank), rank)
    finally:
        if not found and rank.alone:
            _remove_if_empty(workspace)
        elif not rank.alone:
            with suppress(OSError):  # not empty, as a rule
                workspace.rmdir()


def _extract(options: Options, source: Source, extractor: Extractor, rank: Rank) -> str:
    """Write the file, or the shard of this process, and return what to print."""
    require_text(source, options)
    groups = groups_of(source, options.groups)
    arguments = {
        "data": source.name,
        "file_lists": source.digests,
        "splits": list(source.splits),
        "limit": options.limit,
        "dtype": options.dtype,
        "decoding": DECODING,
        **extractor.arguments,
        **({} if groups is None else {"groups": groups.digest}),
    }
    if options.out.exists() and not options.overwrite:
        require_made_by(options.out, {"arguments": arguments})
        try:
            with open_features(options.out) as file:
                rows = file.metadata["n_rows"]
            return f"{options.out}: already complete, {rows} rows"
        except FeatureFileError:
            if rank.alone:
                raise
            # A shard was lost: if it is that of this process, it is made again.
    report_unused_shards(options.out, rank)
    n_images = {s: _count(images, options) for s, images in source.splits.items()}
    state = {"n_images": n_images, **state_of(source)}
    if rank.alone:
        origin = {"arguments": arguments}
        summary = _write(options, source, extractor, rank, groups, origin, state)
        report_gaps(options.out)
        return summary
    _warn_if_unknown(source, state, "Change nothing until all shards are made.")
    shard = {
        **{"number": rank.number + 1, "count": rank.count, "n_images": n_images},
        "sizes": state.get("sizes"),
        "kind_of_host": _kind_of_host(options, extractor),
    }
    origin = {"arguments": arguments, "shard": shard}
    target = rank.target(options.out)
    if target.exists():
        require_made_by(target, origin)
        # Left by a process that was killed after its very last step but one.
        shutil.rmtree(partial_folder(target), ignore_errors=True)
        summary = f"{target}: already complete"
    else:
        summary = _write(options, source, extractor, rank, groups, origin, state)
    return f"{summary}; {join_shards(options.out, rank, origin, source.digests)}"


def _kind_of_host(options: Options, extractor: Extractor) -> str:
    """Return a digest of what decides how a row is rounded here."""
    told = {name: os.environ[name] for name in os.environ if name.startswith(_OF_MATHS)}
    kind = [processor(), versions_of(options), extractor.device_kind, told]
    return hashlib.sha256(json.dumps(kind, sort_keys=True).encode()).hexdigest()


def _warn_if_unknown(source: Source, state: dict[str, Any], remedy: str) -> None:
    """Warn where nothing tells whether records are those that another run read."""
    if not source.digests and "sizes" not in state:
        warn(
            f"{source.name} tells no more than the number of its records: "
            "where some come and others go between two runs for one file, records "
            f"stand in it twice. {remedy}"
        )


def _write(
    options: Options,
    source: Source,
    extractor: Extractor,
    rank: Rank,
    groups: Groups | None,
    origin: dict[str, Any],
    state: dict[str, Any],
) -> str:
    """Write the file, or the shard, of this process.

    A stopped run goes on only if it found the ``state`` that the data have now.
    """
    began = time.perf_counter()
    done = 0
    digests = {}
    target = rank.target(options.out)
    with FeatureWriter(
        target,
        n_features=extractor.n_features,
        dtype=options.dtype,
        # One image more moves the place from which a stopped run goes on.
        arguments={
            **origin["arguments"],
            "shard": origin.get("shard"),
            "kind_of_host": _kind_of_host(options, extractor),
            "the state of the data": state,
        },
        overwrite=options.overwrite,
    ) as writer:
        if writer.resumed:
            found = sum(writer.position(split).n_rows for split in source.splits)
            say(f"continuing after {found} rows in {writer.partial}")
            _warn_if_unknown(source, state, "Pass --overwrite if it may have changed.")
        for split in source.splits:
            done += _extract_split(
                writer, split, source, extractor, options, rank, groups
            )
            if rank.alone and not writer.position(split).n_rows:
                raise ExtractError(
                    f"split {split!r} must hold {_ONE[source.unit]}, but holds none."
                )
            digests[split] = source.digests.get(split) or digest_of_rows(
                writer.labels(split)
            )
        seconds = time.perf_counter() - began
        writer.finish(
            {
                **extractor.metadata,
                "dataset": source.name,
                "limit": options.limit,
                "versions": versions_of(options),
                **origin,
            },
            class_names=source.class_names,
            split_metadata={
                split: {"file_list_sha256": digest} for split, digest in digests.items()
            },
        )
        rows = {split: writer.position(split).n_rows for split in source.splits}
    speed = done / seconds if seconds > 0 else 0.0
    each = ", ".join(f"{split} {n_rows}" for split, n_rows in rows.items())
    return (
        f"{target}: {sum(rows.values())} rows of {extractor.n_features} features "
        f"({each}); {done} {source.unit}s in {seconds:.1f} s "
        f"({speed:.1f} {source.unit}s/s)"
    )


def _count(images: Any, options: Options) -> int:
    """Return the number of images to take of a split."""
    if options.limit is None or getattr(images, "whole", False):
        return len(images)
    return min(len(images), options.limit)


def _extract_split(
    writer: FeatureWriter,
    split: str,
    source: Source,
    extractor: Extractor,
    options: Options,
    rank: Rank,
    groups: Groups | None,
) -> int:
    """Write what is missing of one split; return the number of images dealt with."""
    images, unit = source.splits[split], source.unit
    before = writer.position(split).seen
    first, stop = rank.share(_count(images, options))
    if before:
        began = find_parts(writer.partial)[0].stat().st_mtime
        require_unchanged(images, split, began, range(first, first + before))
    if first == stop:  # fewer images than processes: the shard still has the split
        rows, users = np.empty((0, extractor.n_features)), rows_of(groups, split)
        writer.append(split, rows, np.empty(0, int), groups=users)
    bar = make_bar(
        Progress("privfeat-extract"),
        None,
        LINE,
        desc=split if rank.alone else f"{split}, share 1 of {rank.count}",
        total=stop - first,
        initial=before,
        unit=f" {unit}s",
        disable=options.quiet or rank.number > 0,
    )
    with bar:
        for batch in extractor.batches(images, start=first + before, stop=stop):
            for name, reason in batch.failures:
                if not options.skip_bad:
                    raise ExtractError(
                        f"{unit} {name} of split {split!r} cannot be "
                        f"{_DONE[unit]} ({reason}). Repair or remove it, or pass "
                        "--skip-bad."
                    )
                tqdm.write(f"skipped {name}: {reason}", file=STDERR)
            if source.labelled and (batch.labels < 0).any():
                raise ExtractError(
                    f"split {split!r} must have a label >= 0 for every {unit}, but has "
                    "none for some. Choose other --splits."
                )
            names = [name for name, _ in batch.failures]
            at = first + writer.position(split).seen
            users = rows_of(groups, split, range(at, at + batch.n_seen), names)
            try:
                writer.append(
                    split, batch.features, batch.labels, groups=users, skipped=names
                )
            except ValueError as error:
                if isinstance(error, FeatureFileError):
                    raise
                raise ExtractError(f"split {split!r}: {error}") from error
            bar.update(batch.n_seen)
        return writer.position(split).seen - before


def _remove_if_empty(workspace: Path) -> None:
    """Remove a partial folder that holds no feature."""
    if workspace.is_dir() and not find_parts(workspace):
        shutil.rmtree(workspace, ignore_errors=True)
