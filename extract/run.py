"""The extraction itself: from a source through an extractor into a feature file."""

import platform
import shutil
import sys
import time
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from tqdm import tqdm

from privfeat.data import FeatureFileError, FeatureWriter, open_features
from privfeat.data.journal import JOURNAL, partial_folder

from .arguments import Options
from .errors import ExtractError
from .sources import Source, digest_of_list, open_source

LIBRARIES = (
    "privfeat",
    "numpy",
    "h5py",
    "torch",
    "torchvision",
    "timm",
    "pillow",
    "kymatio",
)


class Extractor(Protocol):
    """What turns images into features."""

    n_features: int
    metadata: dict[str, Any]
    arguments: dict[str, Any]

    def batches(self, images: Any, *, start: int, stop: int | None) -> Any:
        """Yield `FeatureBatch` objects in order."""
        ...


def extract(options: Options) -> str:
    """Write the feature file that the options ask for.

    Returns
    -------
    summary : str
        One line: rows, time, speed, place.

    Raises
    ------
    ExtractError, FeatureFileError, OSError
        With a message for the user. The output does not exist then; a partial folder
        is kept if it holds features.
    """
    workspace = partial_folder(options.out)
    if not options.out.parent.is_dir():
        raise ExtractError(
            f"--out must lie in an existing folder, but there is no "
            f"{options.out.parent}."
        )
    if options.out.exists() and not (options.overwrite or options.resume):
        raise ExtractError(
            f"--out must not exist yet, but {options.out} does. Choose another name, "
            "or pass --overwrite to replace it."
        )
    found = workspace.exists()  # then it is, or may be, of another run
    try:
        source = open_source(
            options.data,
            data_dir=options.data_dir,
            splits=options.splits,
            workspace=workspace,
        )
        with closing(source):
            return _extract(options, source, _extractor(options))
    finally:
        if not found:
            _remove_if_empty(workspace)


def _extract(options: Options, source: Source, extractor: Extractor) -> str:
    arguments = {
        "data": source.name,
        "file_lists": source.digests,
        "splits": list(source.splits),
        "limit": options.limit,
        "dtype": options.dtype,
        **extractor.arguments,
    }
    if options.out.exists() and options.resume:
        return _already_there(options.out, arguments)
    began = time.perf_counter()
    done = 0
    digests = {}
    with FeatureWriter(
        options.out,
        n_features=extractor.n_features,
        dtype=options.dtype,
        arguments=arguments,
        overwrite=options.overwrite,
    ) as writer:
        if writer.resumed:
            found = sum(writer.position(split).n_rows for split in source.splits)
            _notice(f"continuing after {found} rows in {writer.partial}")
        for split, images in source.splits.items():
            done += _extract_split(writer, split, images, extractor, options)
            if not writer.position(split).n_rows:
                raise ExtractError(
                    f"split {split!r} must hold an image that can be decoded, "
                    "but holds none."
                )
            digests[split] = source.digests.get(split) or _digest(writer, split)
        seconds = time.perf_counter() - began
        writer.finish(
            {
                **extractor.metadata,
                "dataset": source.name,
                "limit": options.limit,
                "versions": _versions(),
                "arguments": arguments,
            },
            class_names=source.class_names,
            split_metadata={
                split: {"file_list_sha256": digest} for split, digest in digests.items()
            },
        )
        rows = sum(writer.position(split).n_rows for split in source.splits)
    speed = done / seconds if seconds > 0 else 0.0
    return (
        f"{options.out}: {rows} rows of {extractor.n_features} features; "
        f"{done} images in {seconds:.1f} s ({speed:.1f} images/s)"
    )


def _extract_split(
    writer: FeatureWriter,
    split: str,
    images: Any,
    extractor: Extractor,
    options: Options,
) -> int:
    """Write what is missing of one split; return the number of images dealt with."""
    start = writer.position(split).seen
    total = len(images) if hasattr(images, "__len__") else None
    if options.limit is not None:
        total = options.limit if total is None else min(total, options.limit)
    bar = tqdm(
        desc=split,
        total=total,
        initial=start,
        unit=" images",
        disable=options.quiet,
        mininterval=0.5 if sys.stderr.isatty() else 10.0,
    )
    with bar:
        for batch in extractor.batches(images, start=start, stop=total):
            for name, reason in batch.failures:
                if not options.skip_bad:
                    raise ExtractError(
                        f"image {name} of split {split!r} cannot be decoded "
                        f"({reason}). Repair or remove it, or pass --skip-bad."
                    )
                tqdm.write(f"skipped {name}: {reason}", file=sys.stderr)
            if (batch.labels < 0).any():
                raise ExtractError(
                    f"split {split!r} must have a label >= 0 for every image, but has "
                    "none for some. Choose other --splits."
                )
            names = [name for name, _ in batch.failures]
            try:
                writer.append(split, batch.features, batch.labels, skipped=names)
            except ValueError as error:
                if isinstance(error, FeatureFileError):
                    raise
                raise ExtractError(f"split {split!r}: {error}") from error
            bar.update(batch.n_seen)
        return writer.position(split).seen - start


def _extractor(options: Options) -> Extractor:
    if options.model == "scattering":
        from .scattering import ScatteringExtractor

        return ScatteringExtractor(options)
    try:
        from .network import NetworkExtractor
    except ImportError as error:
        raise ExtractError(
            f"--model {options.model} needs torch and timm, which are not installed "
            f"({error}). Install privfeat[extract], or use --model scattering."
        ) from error
    return NetworkExtractor(options)


def _already_there(path: Path, arguments: dict[str, Any]) -> str:
    """Accept a complete file that these arguments would give again."""
    with open_features(path) as file:
        if file.metadata.get("arguments") != arguments:
            raise ExtractError(
                f"--resume needs the arguments that {path} was made with, but they "
                "differ. Choose another name, or pass --overwrite."
            )
        return f"{path}: already complete, {file.metadata['n_rows']} rows"


def _digest(writer: FeatureWriter, split: str) -> str:
    """Return the digest of a split whose images have numbers but no names."""
    labels = writer.labels(split).tolist()
    return digest_of_list((str(i) for i in range(len(labels))), labels)


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _notice(text: str) -> None:
    sys.stderr.write(f"privfeat-extract: {text}\n")


def _remove_if_empty(workspace: Path) -> None:
    """Remove a partial folder that holds no feature."""
    if workspace.is_dir() and not (workspace / JOURNAL).exists():
        shutil.rmtree(workspace, ignore_errors=True)
