"""``privfeat fit``: train a private classifier and save it.

Train a private classifier on a feature file or a table, save it, print its privacy
statement. Without a budget option, epsilon is 1. For example

    privfeat fit --estimator DPFC --train patients.csv --columns columns.toml
    --target diagnosis --out model
"""

import warnings
from argparse import BooleanOptionalAction, Namespace
from os.path import samefile
from typing import TYPE_CHECKING, Any, TypeAlias

from privfeat.cli.shared import (
    estimators,
    files,
    job,
    models,
    options,
    tables,
    terminal,
)
from privfeat.cli.shared.terminal import CommandError
from privfeat.exceptions import PrivacyWarning

if TYPE_CHECKING:
    from privfeat.cli.shared.tables import Declared, TableRows
    from privfeat.data import FeatureSplit

    Rows: TypeAlias = FeatureSplit | TableRows


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = options.verb(verbs, run, options.fitted(), job.options())
    add = parser.add_argument
    which = "DPFC suits nearly everything"
    add("--estimator", choices=options.ESTIMATORS, required=True, help=which)
    rows = "private rows (split train if there are several)"
    add("--train", metavar="FILE[:SPLIT]", required=True, help=rows)
    rows = "public rows to measure the accuracy on (split test if several)"
    add("--test", metavar="FILE[:SPLIT]", help=rows)
    rows = "public rows of the same network, for public= (split public if several)"
    add("--public", metavar="FILE[:SPLIT]", help=rows)
    number = "number of classes, known to everyone; needed if FILE names none"
    add("--n-classes", type=int, help=number)
    add("--max-labels", type=int, help="labels of a row that count (default: all)")
    add(
        "--groups",
        action=BooleanOptionalAction,
        help="protect all rows of a user together, by the groups that FILE holds, or "
        "each row on its own; must be said where FILE holds groups",
    )
    tables.add_columns(parser)
    options.add_privacy(parser)


def run(args: Namespace) -> None:
    """Fit, save, then report; whatever can fail early does so before the fit."""
    with job.joined_job(args), models.model_folder(args) as begun:
        params = estimators.parameters(args)
        declared = tables.declared_by(args)
        params = (declared.settings if declared is not None else {}) | params
        train = files.open_rows(args.train, "train", declared)
        n_classes = _count_classes(args, train)
        test = _open_test(args, train, declared)
        if args.public is not None:
            params["public"] = _open_public(args, train, declared)
        groups = _groups(args, train)
        params |= {"classes": range(n_classes), "ledger": files.open_ledger(args)}
        params = {"verbose": int(not args.quiet)} | params
        estimator = estimators.make_estimator(args.estimator, params)
        begun.append(estimator)
        from privfeat import persistence

        made = files.origin(args.train)
        table = None if declared is None else declared.saved
        persistence.written_before(estimator, train.class_names, made, table)
        terminal.progress(args, f"fitting {args.estimator} on {args.train} ...")
        with job.all_of_job(args) as first:
            if first:
                _report_gaps(args, train, test)
            estimator.fit(train.X, train.y, groups=groups)
        if not first:
            return
        tested = None if test is None else (test.X, test.y, args.test)
        models.save_model(args, estimator, train.class_names, tested, made, table)
    if args.quiet:
        return
    if declared is not None:
        print(
            f"The statement takes all that {args.columns} declares to be public: none "
            "of it may\ncome from the records."
        )
    elif train.class_names is not None:
        print(
            f"The class names are those of {args.train}. If they come from folders of "
            "private\nimages, a rare one shows."
        )


def _report_gaps(args: Namespace, train: "Rows", test: "Rows | None") -> None:
    """Warn of classes that the splits do not share, before anything is charged."""
    from privfeat.data.gaps import find_gaps

    splits: dict[str, Any] = {f"--train {args.train}": train}
    if test is not None:
        splits[f"--test {args.test}"] = test
    for sentence in find_gaps(splits, everywhere=False):
        terminal.warn(f"{sentence} (About records: no statement covers it.)")


def _groups(args: Namespace, train: "Rows") -> Any:
    """Return the user of each row, if users are to be protected."""
    if isinstance(train, tables.TableRows):
        if args.groups is not None:
            raise CommandError(
                "--groups and --no-groups are for feature files. Name the column of "
                "users by --users, or protect each row on its own without it."
            )
        return train.groups
    if args.groups and not train.X.has_groups:
        raise CommandError(
            f"{args.train} must hold groups for --groups. Extract it with "
            "privfeat-extract --groups, or write it with privfeat.data.write_features."
        )
    if args.groups is None and train.X.has_groups:
        raise CommandError(
            f"{args.train} names the user of each row. Pass --groups and "
            "--max-group-size to protect all rows of a user together, or --no-groups "
            "to protect each row on its own."
        )
    if args.groups:
        return train.groups
    # --no-groups is an answer to this warning
    warnings.filterwarnings("ignore", "X is of a file that says", PrivacyWarning)
    return None


def _count_classes(args: Namespace, train: "Rows") -> int:
    """Return the number of classes, which the labels themselves must not tell."""
    names, multilabel = train.class_names, train.y.ndim == 2
    n_columns = train.y.shape[1] if multilabel else None
    n_classes = n_columns if names is None else len(names)
    n_classes = args.n_classes if n_classes is None else n_classes
    if n_classes is None:
        raise CommandError(
            f"{args.train} names no classes, and to read them from the labels would "
            "not be private. Pass --n-classes."
        )
    if args.n_classes not in (None, n_classes):
        raise CommandError(
            f"--n-classes must be the {n_classes} classes of {args.train}, got "
            f"{args.n_classes}."
        )
    if n_columns not in (None, n_classes):
        raise CommandError(
            f"{args.train} must have labels of {n_classes} columns, as it names "
            f"classes, got {n_columns}."
        )
    if not (multilabel or n_classes > 1):
        raise CommandError(f"there must be at least 2 classes, got {n_classes}.")
    return int(n_classes)


def _open_test(
    args: Namespace, train: "Rows", declared: "Declared | None"
) -> "Rows | None":
    """Return the test rows if they fit the training rows."""
    if args.test is None:
        return None
    made = files.origin(args.train)
    test = files.open_like(args.test, "test", made, "--test", declared)
    if _share_rows(test, train):
        raise CommandError(
            "--test must not be the training split, share a shard with it, or be made "
            f"of the same images, got {args.test}. An accuracy on training records "
            "says something about them."
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


def _open_public(args: Namespace, train: "Rows", declared: "Declared | None") -> Any:
    """Return public rows of the network of the training split, and none of its own."""
    made = files.origin(args.train)
    public = files.open_like(
        args.public, "public", made, "--public", declared, labelled=False
    )
    if _share_rows(public, train):
        raise CommandError(
            "--public must not be the training split, or share a shard with it, got "
            f"{args.public}. The guarantee does not cover public rows."
        )
    return public.X if isinstance(public, tables.TableRows) else public


def _share_rows(test: "Rows", train: "Rows") -> bool:
    """Return whether two splits are one, or have a shard, or a copy, in common."""
    if isinstance(test, tables.TableRows) or isinstance(train, tables.TableRows):
        import numpy as np

        return np.array_equal(test.X, train.X)
    if samefile(test.X.path, train.X.path) and test.X.dataset == train.X.dataset:
        return True
    if _images(test) is not None and _images(test) == _images(train):
        return True
    return not _checksums(test).isdisjoint(_checksums(train))


def _images(split: "FeatureSplit") -> tuple[Any, ...] | None:
    """Return which images an extracted split is of, by their names and labels.

    Another type, precision or view makes other features of them.
    """
    listed = split.metadata.get("file_list_sha256")
    dataset = files.origin(split.X.path).get("dataset")
    return None if listed is None else (dataset, split.name, listed)


def _checksums(split: "FeatureSplit") -> set[int]:
    """Return the checksums of a split's features, of each shard where it is joined."""
    from privfeat.data import open_features

    shards = open_features(split.X.path).shards
    parts = [open_features(shard)[split.name] for shard in shards] or [split]
    found = (part.metadata.get("features_crc32") for part in parts if len(part))
    return {checksum for checksum in found if checksum is not None}
