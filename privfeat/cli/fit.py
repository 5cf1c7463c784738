"""``privfeat fit``: train a private classifier or regressor and save it.

Train a private model on a feature file or a table, save it, print its privacy
statement. Without a budget option, epsilon is 1. For example

    privfeat fit --estimator DPFC --train patients.csv --columns columns.toml
    --target diagnosis --out model
"""

from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from privfeat.cli.shared import (
    estimators,
    files,
    job,
    models,
    options,
    scaled,
    tables,
    terminal,
)
from privfeat.cli.shared.terminal import CommandError
from privfeat.cli.shared.tested import check_public
from privfeat.cli.shared.users import users_of

if TYPE_CHECKING:
    from privfeat.cli.shared.tables import Declared, TableRows
    from privfeat.data import FeatureSplit

    Rows: TypeAlias = FeatureSplit | TableRows


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = options.verb(verbs, run, options.fitted(), job.options())
    add = parser.add_argument
    which = "DPFC suits nearly everything, but for numbers"
    add("--estimator", choices=options.LINEAR, required=True, help=which)
    rows = "private rows (split train if there are several)"
    add("--train", metavar="FILE[:SPLIT]", required=True, help=rows)
    rows = "PUBLIC rows to measure on, with --test-is-public (split test if several)"
    add("--test", metavar="FILE[:SPLIT]", help=rows)
    options.add_public_test(parser)
    rows = "public rows of the same network, for public= (split public if several)"
    add("--public", metavar="FILE[:SPLIT]", help=rows)
    rows = "public rows of the same network, one a class, for prior= (split classes)"
    add("--prior", metavar="FILE[:SPLIT]", help=rows)
    number = "number of classes, known to everyone; needed if FILE names none"
    add("--n-classes", type=int, help=number)
    add("--max-labels", type=int, help="labels of a row that count (default: all)")
    options.add_groups(parser)
    tables.add_columns(parser)
    scaled.add_scale(parser)
    options.add_privacy(parser)


def run(args: Namespace) -> None:
    """Fit, save, then report; whatever can fail early does so before the fit."""
    check_public(args)
    with job.joined_job(args), models.model_folder(args) as begun:
        params = estimators.parameters(args)
        declared = tables.declared_by(args)
        settings = scaled.settings(args, declared)
        params = settings | params
        train = files.open_rows(args.train, "train", declared)
        known = _known(args, train, declared)
        made = files.origin(args.train)
        test = _open_test(args, made, train, declared)
        if args.public is not None:
            found = (args, "public", made, train, declared)
            public = files.open_public(*found, labelled=False)
            of_table = isinstance(public, tables.TableRows)
            params["public"] = public.X if of_table else public
        if args.prior is not None:
            params["prior"] = _open_prior(args, made, train)
        groups = users_of(args, train, args.train, params.get("max_group_size"))
        params = known | params | {"ledger": files.open_ledger(args)}
        params = {"verbose": int(not args.quiet)} | params
        if args.scale == "private":
            estimator = scaled.make_pipeline(args.estimator, params, declared)
        else:
            estimator = estimators.make_estimator(args.estimator, params)
        from privfeat import persistence
        from privfeat.persistence.written import DECLARED

        table = None if declared is None else declared.saved
        persistence.written_before(estimator, train.class_names, made, table)
        begun.append(estimator)
        terminal.progress(args, f"fitting {args.estimator} on {args.train} ...")
        with job.all_of_job(args) as first:
            if first:
                _report_gaps(args, train, test, known)
            with terminal.charged_within(params["ledger"]):
                estimator.fit(train.X, train.y, groups=groups)
        if declared is not None:
            facts = (*estimator.privacy_.public, DECLARED)
            estimator.privacy_ = replace(estimator.privacy_, public=facts)
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
            f"The class names are those of {args.train}. If they come from private "
            "records,\nsuch as their folders, a rare one shows; if from --class-names, "
            "nothing does."
        )


def _report_gaps(
    args: Namespace, train: "Rows", test: "Rows | None", known: dict[str, Any]
) -> None:
    """Warn of classes that the splits do not share, before anything is charged."""
    from privfeat.data.splits import find_gaps

    if "classes" not in known:
        return
    splits: dict[str, Any] = {f"--train {args.train}": train}
    if test is not None:
        splits[f"--test {args.test}"] = test
    for sentence in find_gaps(splits, everywhere=False):
        terminal.warn(f"{sentence} (About records: no statement covers it.)")


def _known(
    args: Namespace, train: "Rows", declared: "Declared | None"
) -> dict[str, Any]:
    """Return the classes, or the bounds of the target, which no label must tell."""
    bounds = None if declared is None else declared.target_bounds
    regressor = args.estimator in options.REGRESSORS
    if declared is not None and regressor != (bounds is not None):
        needs = "numeric or integer" if regressor else "a category or boolean"
        raise CommandError(
            f"--target must be declared {needs} for {args.estimator}, got "
            f"{args.target!r}. Numbers are for {', '.join(options.REGRESSORS)}."
        )
    if not regressor:
        return {"classes": range(_count_classes(args, train))}
    given = options.given(args, ("n_classes", "max_labels", "prior", "public"))
    for name in given:
        raise CommandError(
            f"{options.name_of(name)} must not be given with a regressor."
        )
    if declared is None and (train.class_names is not None or train.y.ndim != 1):
        raise CommandError(
            f"{args.train} must hold one number a row for {args.estimator}, not names "
            "of classes. Pass an --estimator of classes, or a table with --columns."
        )
    return {} if bounds is None else {"target_bounds": bounds}


def _count_classes(args: Namespace, train: "Rows") -> int:
    """Return the number of classes, which the labels themselves must not tell."""
    names, multilabel = train.class_names, train.y.ndim == 2
    n_columns = train.y.shape[1] if multilabel else None
    n_classes = args.n_classes if names is None else len(names)
    if n_classes is None:
        raise CommandError(
            f"{args.train} names no classes, and to read them from the labels, or from "
            "their columns, would not be private. Pass --n-classes."
        )
    if args.n_classes not in (None, n_classes):
        raise CommandError(
            f"--n-classes must be the {n_classes} classes of {args.train}, got "
            f"{args.n_classes}."
        )
    if n_columns not in (None, n_classes):
        raise CommandError(
            f"{args.train} must have labels of {n_classes} columns, one for each "
            f"class, got {n_columns}."
        )
    if not (multilabel or n_classes > 1):
        raise CommandError(f"there must be at least 2 classes, got {n_classes}.")
    return int(n_classes)


def _open_test(
    args: Namespace, made: Any, train: "Rows", declared: "Declared | None"
) -> "Rows | None":
    """Return the test rows if they fit the training rows."""
    if args.test is None:
        return None
    test = files.open_public(args, "test", made, train, declared)
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


def _open_prior(args: Namespace, made: Any, train: "Rows") -> Any:
    """Return a row of features for each class, in the order of the classes."""
    n_classes = _count_classes(args, train)
    if args.columns is not None:
        raise CommandError("--prior must go with features, got --columns of a table.")
    rows = files.open_public(args, "prior", made, train)
    if rows.class_names != train.class_names or rows.y.tolist() != [*range(n_classes)]:
        raise CommandError(
            f"--prior must have one row for each class of {args.train}, in their "
            f"order, got {args.prior}. `privfeat-extract --text` writes such a split, "
            "classes."
        )
    return rows.X[:].astype("float64")
