"""``privfeat workflow``: plan, sanity, audit, fit, calibrate, report in one folder.

Run `plan`, `sanity`, `audit` and `fit`, calibrate (with --calibration), and `report`,
with the same estimator and budget; with --data a network, and `train` for `fit`. Keep
in DIR what each prints (the workflow of van der Veen et al. 2018, Section 3). The tests
of the estimator, on synthetic rows, come before the fit, so that a fault costs no
budget. The same command goes on where it was stopped: a network from its checkpoints,
for the same charge. With --smallest-noise `sanity` also searches the least noise that
passes, as they do: compare it with the noise of `plan`. For example

    privfeat workflow results --train private.h5:train --test public.h5:test
    --test-is-public --n 5000 --epsilon 1 --ledger private.ledger --dataset photos
"""

import io
import json
import math
from argparse import Namespace
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from privfeat._checks import require
from privfeat._types import ADJACENCIES
from privfeat.cli import audit, fit, report, sanity, train
from privfeat.cli.planning import plan
from privfeat.cli.shared import files, images, options, tables
from privfeat.cli.shared.commands import (
    call,
    flags_of,
    paid_once,
    settings_of,
    words_of,
)
from privfeat.cli.shared.terminal import CommandError
from privfeat.cli.shared.tested import check_public, labels_of

_OPTIONS = "workflow.json"
_TRAINING = ("epochs", "expected_batch_size", "learning_rate", "clip_norm")
# of networks alone: folders of features do not name them
_OF_IMAGES = ("data", "model", "image_size", "grey", "skip_bad", *_TRAINING)
# The least that a fit of a test has: rows of `sanity`, and members in `audit`.
_SANITY_RECORDS = 100
_AUDIT_RECORDS = 500


class _Arguments(NamedTuple):
    """What the verbs are given: of features, or of images."""

    plan: list[Any]
    sanity: list[Any]
    audit: list[Any]
    verb: Any
    fit: list[Any]
    test: str | None


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = options.verb(verbs, run, images.options(), *options.SET_AND_QUIET)
    add = parser.add_argument
    add("out", metavar="DIR", help="for the model, the report and what was printed")
    private = parser.add_mutually_exclusive_group(required=True).add_argument
    rows = "private rows (split train if there are several), for --estimator"
    private("--train", metavar="FILE[:SPLIT]", help=rows)
    private("--data", help="private images, as for `train`, for the network --model")
    rows = "PUBLIC rows, or folder of images, to measure accuracy and calibration on"
    add("--test", metavar="FILE[:SPLIT]", help=f"{rows} (of --data test/ by default)")
    options.add_public_test(parser)
    rows = "other PUBLIC ones, to set how confident the model is"
    add("--calibration", metavar="FILE[:SPLIT]", help=rows)
    add("--n", type=int, required=True, help="number of records, roughly: it is public")
    number = "number of classes, known to everyone; needed if FILE names none"
    add("--n-classes", type=int, help=number)
    add("--estimator", choices=options.LINEAR, default="DPFC", help="default DPFC")
    add("--epsilon", type=float, default=1.0, help="the budget (default 1)")
    add("--delta", type=float, default=1e-5, help="default 1e-5")
    add("--adjacency", choices=ADJACENCIES, default="add_remove", help="as for `fit`")
    size = "with --groups, or --users of a table: so many records of a user count"
    add("--max-group-size", type=int, help=size)
    add("--n-fits", type=int, help="fits of each `sanity` test (default 30 and 10)")
    search = "let `sanity` find the smallest noise that passes its random labels too"
    add("--smallest-noise", action="store_true", help=search)
    options.add_groups(parser)
    tables.add_columns(parser)
    options.add_ledger(parser)
    options.add_training(parser)


def run(args: Namespace) -> None:
    """Run the verbs that have not been run yet; stop at the first that fails."""
    from privfeat.report.html import check_packages

    # what comes before it takes minutes
    require("a one-run audit", "jax_privacy", extra="audit")
    check_packages()
    check_public(args)
    images.check_outside(args.data, {"DIR": args.out})
    if not 0.0 < args.epsilon < math.inf:
        raise CommandError(f"--epsilon must be finite and > 0, got {args.epsilon:g}.")
    given = _of_features(args) if args.data is None else _of_images(args)
    quiet = ["--quiet"] if args.quiet else []
    budget = [*words_of(args, "epsilon", "delta", "adjacency"), *quiet]
    tested = [*budget, *settings_of(args)]
    with files.output_folder(args.out) as folder:
        _check_options(args, folder)
        model, found = folder / "model", folder / "audit.json"
        _step(folder / "plan.txt", plan, *given.plan, *budget)
        fits = [*words_of(args, "n_fits"), *flags_of(args, "smallest_noise")]
        _step(folder / "sanity.txt", sanity, *given.sanity, *tested, *fits)
        _step(folder / "audit.txt", audit, *given.audit, *tested, "--out", found)
        charged = words_of(args, "ledger", "dataset")
        name = given.verb.__name__.rpartition(".")[2]
        if (model / "model.json").exists():  # its budget is spent
            print(f"{name}: done before, see {model}")
        else:
            fitted = [*given.fit, *tested, *charged, *words_of(args, "who")]
            fitted += ["--out", model]
            network, ledger = bool(args.data), files.open_ledger(args)
            with paid_once(folder, ledger, network=network) as more:
                _step(folder / f"{name}.txt", given.verb, *fitted, *more)
        if args.calibration is not None:
            _calibrate(args.calibration, given.test, model, folder / "calibration.json")
        told = [*charged, "--audit", found]
        if given.test is not None:  # compared with the records above
            told += ["--test", given.test, "--test-is-public", "--unseen"]
        html, card = folder / "report.html", folder / "card.md"
        call(report, model, "--out", html, "--card", card, *told)


def _of_features(args: Namespace) -> _Arguments:
    """Return what the verbs are given for an estimator on features."""
    for name in options.given(args, _TRAINING):
        raise CommandError(
            f"{options.name_of(name)} is for --data. Pass --set NAME=VALUE."
        )
    declared = tables.declared_by(args)
    train = files.open_rows(args.train, "train", declared, one_label=True)
    regressor = args.estimator in options.REGRESSORS
    n_classes = len(train.class_names or ()) or args.n_classes
    if regressor and (declared is None or args.calibration is not None):
        raise CommandError(
            f"--estimator {args.estimator} needs a table with --columns, and has no "
            "confidence for --calibration."
        )
    if n_classes is None and not regressor:
        raise CommandError(f"{args.train} names no classes. Pass --n-classes.")
    made = files.origin(args.train)
    for name in options.given(args, ("test", "calibration")):
        rows = files.open_public(args, name, made, train, declared, one_label=True)
        argument = getattr(args, name)
        files.check_named_alike(argument, rows, train.class_names, args.train)
    estimator = ["--estimator", args.estimator]
    fitted = words_of(args, "train", "test", "n_classes", "max_group_size")
    fitted += words_of(args, "columns", "target", "users")
    fitted += flags_of(args, "test_is_public")
    if args.groups is not None:
        fitted.append("--groups" if args.groups else "--no-groups")
    own = {} if declared is None else declared.settings  # as `fit` has them
    if declared is not None and declared.target_bounds is not None:
        own |= {"target_bounds": declared.target_bounds}
    named = {one.partition("=")[0] for one in args.set}
    settings = [f"{name}={value}" for name, value in own.items() if name not in named]
    tested = [*estimator, *_users(args)]
    tested += [word for one in settings for word in ("--set", one)]
    sizes = ["--n", args.n, "--d", train.X.shape[1], "--classes", n_classes]
    if regressor:
        sizes = ["--n", args.n, *words_of(args, "columns", "target")]
    return _Arguments(sizes, tested, tested, fit, [*estimator, *fitted], args.test)


def _of_images(args: Namespace) -> _Arguments:
    """Return what the verbs are given for a network on images."""
    if args.groups is not None:
        raise CommandError(
            "--groups is for features. Pass --max-group-size with an HDF5 file that "
            "says whose each image is, or run the verbs one by one."
        )
    below = Path(args.data, "train")
    private = below if below.is_dir() else Path(args.data)
    for name, folder in options.given(args, ("test", "calibration")).items():
        images.check_apart(f"--{name}", folder, private)
    n_classes, side, grey = images.classes_of(args.data)
    size = ["--image-size", side or args.image_size]
    size += ["--grey"] if args.grey or grey else []
    tested = ["--network", args.model, *size, *_users(args)]
    for name in ("epochs", "learning_rate", "clip_norm"):
        for value in options.given(args, (name,)).values():
            tested += ["--set", f"{name}={value:g}"]
    per_user = 1 if args.max_group_size is None else 10
    own_batch = any(one.startswith("expected_batch_size=") for one in args.set)

    def of_few(n_units: int) -> list[str]:
        """Return the words of a batch that so many records, or users, can fill."""
        if own_batch or args.expected_batch_size is None:
            return []
        batch = min(args.expected_batch_size, n_units)
        return ["--set", f"expected_batch_size={batch:g}"]

    fitted = words_of(args, "data", "model", "image_size", "max_group_size", *_TRAINING)
    fitted += flags_of(args, "grey", "skip_bad")
    folder = Path(args.data) / "test"
    own = args.test is None and args.test_is_public and folder.is_dir()
    test = str(folder) if own else args.test
    fitted += ["--test-is-public"] if own else []  # which `train` takes to be of it
    given = args.expected_batch_size
    batch = [] if given is None else ["--batch", int(given)]
    sizes = ["--n", args.n, "--classes", n_classes, *batch, *words_of(args, "epochs")]
    few = [*tested, *of_few(_SANITY_RECORDS // per_user)]
    more = [*tested, *of_few(_AUDIT_RECORDS // (args.max_group_size or 1))]
    return _Arguments(sizes, few, more, train, fitted, test)


def _users(args: Namespace) -> list[str]:
    size = args.max_group_size
    return [] if size is None else ["--set", f"max_group_size={size}"]


def _check_options(args: Namespace, folder: Path) -> None:
    """Refuse a folder of another workflow: its files would be mixed up."""
    left_out = {"run", "quiet", "debug", "who", *(() if args.data else _OF_IMAGES)}
    kept = {k: v for k, v in vars(args).items() if k not in left_out}
    for name in ("test_is_public", "smallest_noise"):
        if not kept[name]:  # folders of earlier releases have none
            del kept[name]
    ledger = files.open_ledger(args)
    # by its name: a URL may hold a password
    kept["ledger"] = None if ledger is None else ledger.budget.uid
    path = folder / _OPTIONS
    text = f"{json.dumps(kept, indent=2, sort_keys=True)}\n"
    if not path.exists():
        if any(folder.iterdir()):
            raise CommandError(f"DIR must be empty, or of a workflow, got {folder}.")
        files.write_file(path, text.encode())
    elif path.read_text(encoding="utf-8") != text:
        raise CommandError(
            f"DIR must be of a workflow with these options, got {folder}. Name another "
            "folder."
        )


def _step(path: Path, verb: Any, *words: Any) -> None:
    """Run a verb, unless it was, and keep what it prints if it does not fail."""
    name = path.stem
    if path.exists():
        print(f"{name}: done before, see {path}")
        return
    print(f"--- privfeat {name}", flush=True)
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            call(verb, *words)
    finally:
        print(printed.getvalue(), flush=True)
    files.write_file(path, printed.getvalue().encode())


def _calibrate(given: str, test: str | None, model: Path, path: Path) -> None:
    """Write the temperature that public rows give, and what it changes on others."""
    from privfeat import TemperatureScaling, persistence
    from privfeat.analysis.calibration import report_of

    made, clf = persistence.load_origin(model), persistence.load(model)

    def rows_of(option: str, named: str) -> tuple[Any, Any]:
        if hasattr(clf, "input_shape_"):
            return images.labelled_images(option, named, model, clf)[:2]
        declared = tables.declared_of(str(model))
        like: Any = {"option": option, "fitted_on": made}
        rows = files.open_rows(named, "test", declared, **like, one_label=True)
        return rows.X, labels_of(rows, named, clf, str(model))

    X, y = rows_of("--calibration", given)
    scaled = TemperatureScaling(clf, public=True).fit(X, y)
    found: dict[str, Any] = {"temperature": scaled.temperature_}
    if test is not None:
        rows = rows_of("--test", test)
        for when, one in (("before", clf), ("after", scaled)):
            measured = report_of(one, *rows)
            found[when] = {"ece": measured.ece, "nll": measured.nll}
    files.write_file(path, f"{json.dumps(found, indent=2)}\n".encode())
    print(
        f"temperature {scaled.temperature_:.3f}, by public rows: in Python, "
        "TemperatureScaling(model, public=True).fit(X, y)"
    )
