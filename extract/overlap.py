"""``privfeat-extract overlap``: near-duplicates between two feature files.

What a network saw in pretraining is not protected. Where its training images, or other
public ones, are there as a feature file of the same network, this tells which private
images are among them, nearly the same.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfeat._files import write_atomically
from privfeat.data import FeatureFile, FeatureWriter, open_features
from privfeat.data.schema import RESERVED, WITHOUT_DUPLICATES, require_free

from .class_means import accuracy_of, class_means, labels_of
from .errors import ExtractError, say
from .similarity import BLOCK_ROWS, Best, nearest, settled, unit_blocks
from .values import cosine, count_or_zero, path_argument

EPILOG = """\
Rows are numbered from 0 in each split. What is ordinary depends on the network: the
median is printed to compare with. The result is about records: do not publish it if
one of the files is private.

for example:
  privfeat-extract overlap photos.h5 public.h5 --threshold 0.9 --out pairs.json
  privfeat-extract overlap photos.h5 public.h5 --remove apart.h5
"""
_WARNING = (
    "warning: counts and pairs tell of the records of both files. If "
    "one is private, so is this result: no privacy statement covers it."
)
_WARNING_OF_REMOVAL = (
    "warning: which rows of B are missing tells of the records of A. Keep the file at "
    "home: every fit refuses it as public=, and with a ledger as its records, as "
    "long as rows are read as split.X, not copied into an array."
)


def main(argv: Sequence[str]) -> None:
    """Compare two files, print what is near, and write it where asked."""
    options = overlap_parser().parse_args(argv)
    say(_WARNING)
    if options.remove is not None:
        if not options.a_is_public:
            say(_WARNING_OF_REMOVAL)
        require_free(options.remove, overwrite=False)
    with open_features(options.a) as a, open_features(options.b) as b:
        best_a, best_b = nearest(a, b)
        found = {
            "a": settled(best_a, a, b, options.threshold),
            "b": settled(best_b, b, a, options.threshold),
        }
        pairs = _pairs(a, b, found["a"], options.threshold)
        for name, other in (("a", "b"), ("b", "a")):
            similarity = found[name].similarity
            near = np.count_nonzero(similarity >= options.threshold)
            median = float(np.median(similarity)) if len(similarity) else 0.0
            print(
                f"{getattr(options, name)}: {near} of {len(similarity)} rows have a "
                f"near-duplicate in {getattr(options, other)} (similarity >= "
                f"{options.threshold:g}; the median of the best is {median:.3f})"
            )
    if pairs[: options.pairs]:
        print(f"\n{'similarity':>10}  {'row of A':<20}  row of B")
    for similarity, one, two in pairs[: options.pairs]:
        print(f"{similarity:10.6f}  {' '.join(map(str, one)):<20}  {two[0]} {two[1]}")
    if options.out is not None:
        document = {
            "a": str(options.a),
            "b": str(options.b),
            "threshold": options.threshold,
            "pairs": [
                dict(zip(("similarity", "a", "b"), p, strict=True)) for p in pairs
            ],
        }
        write_atomically(options.out, (json.dumps(document, indent=1) + "\n").encode())
    if options.remove is not None:
        near = found["b"].similarity >= options.threshold
        with open_features(options.a) as a, open_features(options.b) as b:
            write_without(b, near, options.remove, of=a, is_public=options.a_is_public)
        print(
            f"{options.remove}: {np.count_nonzero(~near)} of {len(near)} rows of "
            f"{options.b}, without {np.count_nonzero(near)} near-duplicates"
        )
        say_accuracy(options, near)


def write_without(
    file: FeatureFile,
    near: NDArray[np.bool_],
    path: Path,
    *,
    of: FeatureFile,
    is_public: bool = False,
) -> None:
    """Write the rows of a file that are not ``near``, with what is known of its origin.

    ``near`` is over the rows of all splits, and ``of`` the file whose near-duplicates
    they are. Each split keeps its fingerprint, unless it ``is_public``, beside those of
    earlier calls, by which fits refuse rows that records have chosen. Where it is
    public, each row is kept or not by itself. ExtractError if no row is left;
    FeatureFileError if the file exists.
    """
    if np.all(near):
        raise ExtractError(f"{file.path} must hold a row that is no near-duplicate.")
    writer = FeatureWriter(
        path,
        n_features=file.n_features,
        dtype=file.metadata["feature_dtype"],
        arguments={"writer": "overlap --remove"},
        overwrite=True,  # what an earlier call left
    )
    with writer:
        first = 0
        for name, split in file.items():
            kept = np.flatnonzero(~near[first : first + len(split)])
            for start in range(0, len(kept), BLOCK_ROWS):
                rows = kept[start : start + BLOCK_ROWS]
                groups = None if split.groups is None else split.groups[rows]
                writer.append(name, split.X[rows], split.y[rows], groups=groups)
            first += len(split)
        left_out = {*RESERVED, "arguments"}
        metadata = {k: v for k, v in file.metadata.items() if k not in left_out}
        chosen_before = {one for split in of.values() for one in split.X.chosen_by}
        makers = {one for split in of.values() for one in (split.made, *split.X.shards)}
        makers = set() if is_public else makers
        chosen = {
            name: {WITHOUT_DUPLICATES: sorted(private)}
            for name, split in file.items()
            if (private := {*split.X.chosen_by, *chosen_before, *makers})
        }
        writer.finish(metadata, class_names=file.class_names, split_metadata=chosen)


def say_accuracy(options: argparse.Namespace, near: NDArray[np.bool_]) -> None:
    """Print how accurate class means of B are on A, with and without what is ``near``.

    Only where every record has a class that both files name. Rows have norm one.
    """
    with open_features(options.a) as a, open_features(options.b) as b:
        labels_a, labels_b = labels_of(a), labels_of(b)
        if a.class_names != b.class_names or labels_a is None or labels_b is None:
            print("accuracy: not compared, as some record has no class that both name")
            return
        shape = len(a.class_names or ()), a.n_features
        one, two = (
            accuracy_of(
                class_means(unit_blocks(b), labels_b, kept, shape),
                unit_blocks(a),
                labels_a,
            )
            for kept in (np.ones_like(near), ~near)
        )
    print(
        f"accuracy on {options.a} by the class means of {options.b}: {100 * one:.1f} % "
        f"with all rows, {100 * two:.1f} % without near-duplicates"
    )


def overlap_parser() -> argparse.ArgumentParser:
    """Return the parser of ``privfeat-extract overlap``."""
    parser = argparse.ArgumentParser(
        prog="privfeat-extract overlap",
        description="Find near-duplicates between two feature files of one network.\n"
        "For every row of A the most similar row of B, by the cosine of their angle.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("a", metavar="A.h5", type=path_argument)
    parser.add_argument("b", metavar="B.h5", type=path_argument)
    parser.add_argument(
        "--threshold",
        type=cosine,
        default=0.95,
        help="similarity from which rows are near-duplicates (default 0.95)",
    )
    parser.add_argument(
        "--pairs", type=count_or_zero, default=20, help="pairs to print (default 20)"
    )
    parser.add_argument(
        "--out", type=path_argument, metavar="FILE.json", help="write all pairs there"
    )
    parser.add_argument(
        "--remove",
        type=path_argument,
        metavar="OUT.h5",
        help="write B without its near-duplicates of A there, and say how accurate "
        "class means of B are on A with and without them",
    )
    parser.add_argument(
        "--a-is-public",
        action="store_true",
        help="A holds no private record, so that each row of B goes by itself: fits "
        "with a ledger take what --remove writes",
    )
    return parser


def _pairs(
    a: FeatureFile, b: FeatureFile, best: Best, threshold: float
) -> list[tuple[float, Any, Any]]:
    """Return (similarity, row of a, row of b) from ``threshold`` on, nearest first."""
    near = np.flatnonzero(best.similarity >= threshold)
    near = near[np.argsort(-best.similarity[near], kind="stable")]
    cosines = np.minimum(best.similarity, 1.0)  # rounded sums may be a little larger
    return [
        (float(cosines[row]), _place(a, row), _place(b, best.row[row]))
        for row in near
        if best.row[row] >= 0
    ]


def _place(file: FeatureFile, row: int) -> tuple[str, int]:
    """Return split and number of a row that is numbered over all splits."""
    row = int(row)
    for name, split in file.items():
        if row < len(split):
            return name, row
        row -= len(split)
    raise IndexError(f"row must be one of {file.path}, got {row} too many.")
