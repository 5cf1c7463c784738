"""``privfeat fit``: train one private classifier on a feature file and save it."""

import argparse
import sys
import warnings
from os.path import samefile
from typing import TYPE_CHECKING, Any

from privfeat.cli import options
from privfeat.cli.common import (
    CommandError,
    interrupt_explained,
    make_estimator,
    open_ledger,
    open_split,
    output_folder,
    parse_settings,
    print_fit,
    progress,
    refuse_to_replace,
    save_fit,
    warn,
)
from privfeat.cli.job import all_of_job, joined_job
from privfeat.exceptions import PrivacyWarning

if TYPE_CHECKING:
    from privfeat.data import FeatureSplit

_BOUNDS = ("max_labels", "max_group_size")
# Parameters that `--set` must not give, and the options that do.
_RESERVED = {
    name: f"--{name.replace('_', '-')}"
    for name in (*options.PRIVACY, *_BOUNDS, "ledger")
} | {"random_state": "--seed", "classes": "--n-classes"}


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = verbs.add_parser(
        "fit",
        parents=[
            options.saved_model(),
            options.settings(),
            options.job(),
            options.ledger("charge the fit to", "whose budget is charged"),
            options.quiet("print warnings alone"),
        ],
        help="train a private classifier and save it",
        description="Train a private classifier on a feature file, save it, print its "
        "privacy statement. Without a budget option, epsilon is 1.",
    )
    parser.set_defaults(run=run)
    add = parser.add_argument
    add(
        "--estimator",
        choices=options.ESTIMATORS,
        required=True,
        help="DPFC suits nearly everything",
    )
    add(
        "--train",
        metavar="FILE[:SPLIT]",
        required=True,
        help="private rows (split train if there are several)",
    )
    add(
        "--test",
        metavar="FILE[:SPLIT]",
        help="public rows to measure the accuracy on (split test if several)",
    )
    add(
        "--n-classes",
        type=int,
        help="number of classes, known to everyone; needed if FILE names none",
    )
    add(
        "--max-labels",
        type=int,
        help="labels of a row that count, where rows have several (default: all)",
    )
    add(
        "--groups",
        action=argparse.BooleanOptionalAction,
        help="protect all rows of a user together, by the groups that FILE holds, or "
        "each row on its own; must be said where FILE holds groups",
    )
    add(
        "--max-group-size",
        type=int,
        help="with --groups: how many rows of a user count; noise grows with it",
    )
    options.add_privacy(parser)


def run(args: argparse.Namespace) -> None:
    """Fit, save, then report; whatever can fail early does so before the fit."""
    with joined_job(args), interrupt_explained() as begun:
        _run(args, begun)


def _run(args: argparse.Namespace, begun: list[Any]) -> None:
    settings = parse_settings(args.set)
    for name in settings:
        if name in _RESERVED:
            raise CommandError(f"--set {name}=... must be given as {_RESERVED[name]}.")
    train = open_split(args.train, preferred="train")
    n_classes = _count_classes(args, train)
    test = _open_test(args, train)
    params = options.given(args, (*options.PRIVACY, *_BOUNDS)) | settings
    groups = _groups(args, train)
    params |= {"classes": range(n_classes), "ledger": open_ledger(args)}
    estimator = make_estimator(args.estimator, **params)
    begun.append(estimator)
    refuse_to_replace(args)
    from privfeat import persistence

    persistence.written_before(estimator, train.class_names)
    with output_folder(args.out):
        progress(args, f"fitting {args.estimator} on {args.train} ...")
        if "verbose" not in settings and not args.quiet and sys.stderr.isatty():
            estimator.set_params(verbose=1)
        with all_of_job(args) as first:
            if first:
                _report_gaps(args, train, test)
            estimator.fit(train.X, train.y, groups=groups)
        if not first:
            return
        if "verbose" not in settings:
            estimator.set_params(verbose=0)
        save_fit(args, estimator, train.class_names)
    tested = None if test is None else (test.X, test.y, args.test)
    print_fit(args, estimator, tested)
    if train.class_names is not None and not args.quiet:
        print(
            f"The class names are those of {args.train}. If they come from folders of "
            "private\nimages, a rare one shows."
        )


def _report_gaps(
    args: argparse.Namespace, train: "FeatureSplit", test: "FeatureSplit | None"
) -> None:
    """Tell the person who has the files what is amiss, before anything is charged."""
    from privfeat.data.gaps import find_gaps

    splits = {f"--train {args.train}": train}
    if test is not None:
        splits[f"--test {args.test}"] = test
    for sentence in find_gaps(splits, everywhere=False):
        warn(f"{sentence} (About records: no statement covers it.)")


def _groups(args: argparse.Namespace, train: "FeatureSplit") -> Any:
    """Return whose the rows are, if they are to be protected by user."""
    if args.groups and not train.X.has_groups:
        raise CommandError(
            f"{args.train} must hold groups for --groups. Extract it with "
            "privfeat-extract --groups, or write it with privfeat.data.write_features."
        )
    if args.groups is None and train.X.has_groups:
        raise CommandError(
            f"{args.train} says whose each row is. Pass --groups and --max-group-size "
            "to protect all rows of a user together, or --no-groups to protect each "
            "row on its own."
        )
    if args.groups:
        return train.groups
    # --no-groups is an answer to this warning
    warnings.filterwarnings("ignore", "X is of a file that says", PrivacyWarning)
    return None


def _count_classes(args: argparse.Namespace, train: "FeatureSplit") -> int:
    names, multilabel = train.class_names, train.y.ndim == 2
    if multilabel and names is None:
        names = tuple(map(str, range(train.y.shape[1])))
    if names is None and args.n_classes is None:
        raise CommandError(
            f"{args.train} names no classes, and to read them from the labels would "
            "not be private. Pass --n-classes."
        )
    n_classes = args.n_classes if names is None else len(names)
    if args.n_classes not in (None, n_classes):
        raise CommandError(
            f"--n-classes must be the {n_classes} classes of {args.train}, got "
            f"{args.n_classes}."
        )
    if multilabel and train.y.shape[1] != n_classes:
        raise CommandError(
            f"{args.train} must have labels of {n_classes} columns, as it names "
            f"classes, got {train.y.shape[1]}."
        )
    if not (multilabel or n_classes > 1):
        raise CommandError(f"there must be at least 2 classes, got {n_classes}.")
    return int(n_classes)


def _share_rows(test: "FeatureSplit", train: "FeatureSplit") -> bool:
    """Return whether two splits are one, or have a shard, or a copy, in common."""
    if samefile(test.X.path, train.X.path) and test.X.dataset == train.X.dataset:
        return True
    return not _checksums(test).isdisjoint(_checksums(train))


def _checksums(split: "FeatureSplit") -> set[int]:
    """Return the checksums of a split's features, of each shard where it is joined."""
    from privfeat.data import open_features

    shards = open_features(split.X.path).shards
    parts = [open_features(shard)[split.name] for shard in shards] or [split]
    found = (part.metadata.get("features_crc32") for part in parts if len(part))
    return {checksum for checksum in found if checksum is not None}


def _open_test(
    args: argparse.Namespace, train: "FeatureSplit"
) -> "FeatureSplit | None":
    """Return the test split if it fits the training split."""
    if args.test is None:
        return None
    test = open_split(args.test, preferred="test")
    if _share_rows(test, train):
        raise CommandError(
            f"--test must not be the training split, or share a shard with it, got "
            f"{args.test}. An accuracy on training records tells of them."
        )
    if test.y.shape[1:] != train.y.shape[1:]:
        raise CommandError(f"{args.test} must have labels as {args.train} has them.")
    if test.class_names != train.class_names:
        raise CommandError(f"{args.test} must have the classes of {args.train}.")
    if test.X.shape[1] != train.X.shape[1]:
        raise CommandError(
            f"{args.test} must have {train.X.shape[1]} features, as {args.train}, "
            f"got {test.X.shape[1]}."
        )
    return test
