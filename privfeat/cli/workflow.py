"""``privfeat workflow``: plan, sanity, audit, fit, calibrate, report in one folder.

Run `plan`, `sanity`, `audit` and `fit`, calibrate (with --calibration), and `report`,
with the same estimator and budget. Keep in DIR what each prints (the workflow of van
der Veen et al. 2018, Section 3, for features). The tests of the estimator, on synthetic
rows, come before the fit, so that a fault costs no budget. The same command goes on
where it was stopped. For example

    privfeat workflow results --train private.h5:train --test public.h5:test --n 5000
    --epsilon 1 --ledger private.ledger --dataset photos
"""

import io
import json
import math
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from privfeat._extras import require
from privfeat._types import ADJACENCIES
from privfeat.cli import audit, fit, plan, report, sanity
from privfeat.cli.shared import files, options
from privfeat.cli.shared.terminal import CommandError

_OPTIONS = "workflow.json"


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = options.verb(verbs, run, options.set_and_quiet())
    add = parser.add_argument
    add("out", metavar="DIR", help="for the model, the report and what was printed")
    rows = "private rows (split train if there are several)"
    add("--train", metavar="FILE[:SPLIT]", required=True, help=rows)
    rows = "PUBLIC rows to measure accuracy and calibration on"
    add("--test", metavar="FILE[:SPLIT]", help=rows)
    rows = "other PUBLIC rows, to set how confident the model is"
    add("--calibration", metavar="FILE[:SPLIT]", help=rows)
    add("--n", type=int, required=True, help="number of records, roughly: it is public")
    number = "number of classes, known to everyone; needed if FILE names none"
    add("--n-classes", type=int, help=number)
    add("--estimator", choices=options.ESTIMATORS, default="DPFC", help="default DPFC")
    add("--epsilon", type=float, default=1.0, help="the budget (default 1)")
    add("--delta", type=float, default=1e-5, help="default 1e-5")
    add("--adjacency", choices=ADJACENCIES, default="add_remove", help="as for `fit`")
    add("--groups", action=BooleanOptionalAction, help="as for `fit`")
    size = "with --groups: at most so many records of a user count"
    add("--max-group-size", type=int, help=size)
    add("--n-fits", type=int, help="fits of each `sanity` test (default 30 and 10)")
    options.add_ledger(parser)


def run(args: Namespace) -> None:
    """Run the verbs that have not been run yet; stop at the first that fails."""
    from privfeat.report.html import check_packages

    # what comes before it takes minutes
    require("a one-run audit", "jax_privacy", extra="audit")
    check_packages()
    if not 0.0 < args.epsilon < math.inf:
        raise CommandError(f"--epsilon must be finite and > 0, got {args.epsilon:g}.")
    train = files.open_split(args.train, preferred="train", one_label=True)
    n_classes = len(train.class_names or ()) or args.n_classes
    if n_classes is None:
        raise CommandError(f"{args.train} names no classes. Pass --n-classes.")
    with files.output_folder(args.out) as folder:
        _check_options(args, folder)
        model, budget = folder / "model", _argv(args, "epsilon", "delta", "adjacency")
        quiet = ["--quiet"] if args.quiet else []
        settings = [word for one in args.set for word in ("--set", one)]
        size = args.max_group_size
        users = [] if size is None else ["--set", f"max_group_size={size}"]
        tested = ["--estimator", args.estimator, *budget, *settings, *users, *quiet]
        sizes = ["--n", args.n, "--d", train.X.shape[1], "--classes", n_classes]
        fitted = ["--estimator", args.estimator, *budget, *settings, *quiet]
        fitted += _argv(args, "train", "test", "n_classes", "max_group_size")
        fitted += _argv(args, "ledger", "dataset")
        if args.groups is not None:
            fitted.append("--groups" if args.groups else "--no-groups")
        found = folder / "audit.json"
        _step(folder / "plan.txt", plan, *sizes, *budget, *quiet)
        _step(folder / "sanity.txt", sanity, *tested, *_argv(args, "n_fits"))
        _step(folder / "audit.txt", audit, *tested, "--out", found)
        if (model / "model.json").exists():  # its budget is spent
            print(f"fit: done before, see {model}")
        else:
            _step(folder / "fit.txt", fit, *fitted, "--out", model)
        if args.calibration is not None:
            _calibrate(args, model, folder / "calibration.json")
        told = [*_argv(args, "test", "ledger", "dataset"), "--audit", found]
        told += ["--test-is-public"] * (args.test is not None)
        html, card = folder / "report.html", folder / "card.md"
        _call(report, model, "--out", html, "--card", card, *told)


def _check_options(args: Namespace, folder: Path) -> None:
    """Refuse a folder of another workflow: its files would be mixed up."""
    kept = {k: v for k, v in vars(args).items() if k not in ("run", "quiet", "debug")}
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


def _argv(args: Namespace, *names: str) -> list[str]:
    """Return the options of these names that were given, as words."""
    return [
        word
        for name, value in options.given(args, names).items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]


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
            _call(verb, *words)
    finally:
        print(printed.getvalue(), flush=True)
    files.write_file(path, printed.getvalue().encode())


def _call(verb: Any, *words: Any) -> None:
    """Run the command line of a verb."""
    parser = ArgumentParser(prog="privfeat")
    verb.add_parser(parser.add_subparsers(dest="verb"))
    name = verb.__name__.rpartition(".")[2]
    args = parser.parse_args([name, *map(str, words)])
    args.run(args)


def _calibrate(args: Namespace, model: Path, path: Path) -> None:
    """Write the temperature that public rows give, and what it changes on others."""
    from privfeat import TemperatureScaling, persistence
    from privfeat.analysis.metrics import report_of

    made, clf = persistence.load_origin(model), persistence.load(model)

    def rows_of(name: str) -> Any:
        given = getattr(args, name)
        return files.open_like(given, "test", made, f"--{name}", one_label=True)

    rows = rows_of("calibration")
    scaled = TemperatureScaling(clf, public=True).fit(rows.X, rows.y[:])
    found: dict[str, Any] = {"temperature": scaled.temperature_}
    if args.test is not None:
        test = rows_of("test")
        for when, one in (("before", clf), ("after", scaled)):
            measured = report_of(one, test.X, test.y[:])
            found[when] = {"ece": measured.ece, "nll": measured.nll}
    files.write_file(path, f"{json.dumps(found, indent=2)}\n".encode())
    print(
        f"temperature {scaled.temperature_:.3f}, by public rows: in Python, "
        "TemperatureScaling(model, public=True).fit(X, y)"
    )
