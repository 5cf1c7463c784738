"""``privfeat plan``: what a budget buys, before private data is read.

Print how noisy each estimator will be, roughly what that costs in accuracy, what more
data would buy, and which estimator to use. Read no private record. With --public, try
the estimators on public features with that noise. Without --d, plan a network.
For example

    privfeat plan --n 50000 --d 768 --classes 100 --epsilon 1
    privfeat plan --n 5000 --columns columns.toml --target diagnosis --epsilon 1
"""

import json
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from privfeat.cli.planning import plan_words as words
from privfeat.cli.shared import files, options, tables, terminal
from privfeat.cli.shared.terminal import CommandError

if TYPE_CHECKING:
    from privfeat.analysis.planning import Outlook


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = options.verb(verbs, run, options.AS_JSON, options.compared())
    add = parser.add_argument
    many = "number of records, of users if a fit protects these, roughly: it is public"
    add("--n", type=int, required=True, help=many)
    size = "number of features; without it and --columns, plan a network alone"
    add("--d", type=int, help=size)
    add("--classes", type=int, help="number of classes, unless --columns tells it")
    add("--epsilon", type=float, required=True, help="the budget")
    public = "PUBLIC features of the same network, with labels: they get no protection"
    add("--public", metavar="FILE[:SPLIT]", help=public)
    more = "show what so many times the records would buy (default 2)"
    add("--data-factor", metavar="F", type=float, default=2.0, help=more)
    size = "a batch size to show in the table of networks"
    add("--batch", type=int, help=size)
    epochs = "for the table of batch sizes (default 10)"
    add("--epochs", type=float, default=10.0, help=epochs)
    tables.add_columns(parser, users=False)


def run(args: Namespace) -> None:
    """Print the plan."""
    declared = tables.declared_by(args)
    _set_sizes(args, declared)
    found = _nothing(args)
    if args.d is None:
        found |= _network(args, found)
    elif args.classes is None:
        found |= _regressor(args, found, declared)
    else:
        found |= _classifiers(args, found, declared)
    if args.json:
        print(json.dumps(found, indent=2))
    elif args.d is not None:
        print(f"\nuse {found['recommended']}: {found['reason']}")


def _nothing(args: Namespace) -> dict[str, Any]:
    """Return what the JSON document says without an estimator to plan."""
    from privfeat.analysis.planning import delta_warnings

    return {
        "n_samples": args.n,
        "n_features": args.d,
        "n_classes": args.classes,
        "epsilon": args.epsilon,
        "delta": args.delta,
        "adjacency": args.adjacency,
        "estimators": [],
        "more_data": None,
        "public": None,
        "networks": None,
        "recommended": None,
        "reason": None,
        "warnings": [*delta_warnings(args.delta, args.n)],
    }


def _classifiers(
    args: Namespace, found: dict[str, Any], declared: "tables.Declared | None"
) -> dict[str, Any]:
    """Plan every linear classifier; return their part of the JSON document."""
    from privfeat.analysis.planning import plan

    budget = options.given(args, ("epsilon", "delta", "adjacency"))
    sizes = (args.n, args.d, args.classes)
    if declared is not None:
        budget["clip_norm"] = declared.settings["clip_norm"]
    outlook = plan(*sizes, **budget, data_factor=args.data_factor)
    # what can be refused is, before anything is printed
    public = None if args.public is None else _open_public(args, declared)
    if not args.json:
        what = f"{args.d} features, {args.classes} classes"
        words.print_budget(args, what, found["warnings"])
        words.print_noise(outlook)
    told = _of_outlook(outlook)
    told["warnings"] = found["warnings"] + told["warnings"]
    if public is not None:
        told |= _of_trials(args, budget, *public)
    elif words.hopeless(outlook):
        told["reason"] += ", though no estimator learns much from so little"
    if declared is None or args.batch is not None:  # few train networks on tables
        told["networks"] = _of_batches(args)
    return told


def _of_outlook(outlook: "Outlook") -> dict[str, Any]:
    """Return the part of the JSON document on linear classifiers."""
    caution = " ".join(words.caution_of(outlook).split())
    expected = {row.estimator: row.expected_loss for row in outlook.more_data}
    return {
        "estimators": [
            {
                "estimator": row.estimator,
                "releases": _of_releases(row.releases),
                "score_noise": row.score_noise,
                "expected_loss": row.expected_loss,
            }
            for row in outlook.estimators
        ],
        "more_data": {
            "factor": outlook.data_factor,
            "same_noise_epsilon": outlook.same_noise_epsilon,
            "expected_loss": expected,
        },
        "recommended": outlook.recommended,
        "reason": outlook.reason,
        "warnings": [caution] if caution else [],
    }


def _of_releases(releases: Any) -> list[dict[str, Any]]:
    """Return the JSON form of planned releases."""
    return [
        {
            "query": release.query.name,
            "count": release.query.count,
            "noise_stddev": release.noise_stddev,
        }
        for release in releases
    ]


def _of_trials(args: Namespace, budget: dict[str, Any], X: Any, y: Any) -> Any:
    """Try the estimators on public rows; return that part of the JSON document."""
    from privfeat.analysis.public_trials import run_trials

    terminal.progress(args, "fitting on public features ...")
    trials = run_trials(X, y, n_samples=args.n, n_repeats=args.repeats, **budget)
    terminal.warn(
        f"the accuracies on {args.public} are exact and protect none of its rows: pass "
        "public ones alone."
    )
    if not args.json:
        words.print_trials(trials, args)
    measured = [
        {"estimator": one.estimator, "accuracies": [*one.accuracies]} for one in trials
    ]
    return {
        "public": {"non_private": trials[0].non_private, "estimators": measured},
        "recommended": max(trials, key=lambda trial: trial.accuracy).estimator,
        "reason": "the best on the public features without prior= (with it, DPFC)",
    }


def _set_sizes(args: Namespace, declared: "tables.Declared | None") -> None:
    """Take the sizes of a table from what is declared of it."""
    given = args.d is not None, args.classes is not None
    if any(given) if declared is not None else given == (True, False):
        raise CommandError(
            "the numbers of features and classes must be given once: by --d and "
            "--classes, or by --columns and --target. A network needs neither."
        )
    if declared is None and args.d is None and args.public is not None:
        raise CommandError("--d must be given with --public: how many features.")
    if declared is not None:
        names = declared.class_names
        args.d = declared.n_features
        args.classes = None if names is None else len(names)


def _regressor(
    args: Namespace, found: dict[str, Any], declared: "tables.Declared | None"
) -> dict[str, Any]:
    """Plan the regressor of a table; return its part of the JSON document."""
    from privfeat.cli.shared.estimators import make_estimator

    if declared is None or args.public is not None:
        raise CommandError("--public must not be given for a target of numbers.")
    (name,) = options.REGRESSORS
    given = {**declared.settings, "target_bounds": declared.target_bounds}
    given |= options.given(args, ("epsilon", "delta", "adjacency"))
    releases = make_estimator(name, given).planned(args.d).releases
    if not args.json:
        what = f"{args.d} features, a number to predict"
        words.print_budget(args, what, found["warnings"])
        print("\nnoise of every release (exact):")
        words.print_releases(name, releases, args.n)
    return {
        "estimators": [{"estimator": name, "releases": _of_releases(releases)}],
        "recommended": name,
        "reason": "the estimator of numbers",
    }


def _open_public(
    args: Namespace, declared: "tables.Declared | None"
) -> tuple[Any, Any]:
    """Return features and labels of ``--public``."""
    split = files.open_rows(args.public, "train", declared, one_label=True)
    files.check_whole("--public", args.public, split)
    if split.X.shape[1] != args.d:
        raise CommandError(
            f"{args.public} must have {args.d} features, as --d says, got "
            f"{split.X.shape[1]}."
        )
    return split.X[:], split.y[:]


def _network(args: Namespace, found: dict[str, Any]) -> dict[str, Any]:
    """Plan a network alone; return its part of the JSON document."""
    from privfeat.analysis.tan import TAN

    if not args.json:
        words.print_budget(args, "a network", found["warnings"])
    told = _of_batches(args)
    chosen = args.batch or told["settings"][-1]["batch_size"]
    row = next(row for row in told["settings"] if row["batch_size"] == chosen)
    now = TAN(chosen / args.n, row["noise_multiplier"], row["n_iter"])
    delta = args.delta / args.data_factor
    epsilon = now.with_more_data(args.data_factor).epsilon(delta, accountant="rdp")
    if not args.json:
        print(
            f"more data: {args.data_factor:g} times the records, the same steps of "
            f"{chosen} records: epsilon {epsilon:.3g}"
        )
    more = {"factor": args.data_factor, "batch_size": chosen}
    more |= {"epsilon": epsilon, "delta": delta}
    return {"networks": told | {"more_data": more}}


def _of_batches(args: Namespace) -> dict[str, Any]:
    """Return the part of the JSON document on networks, for some batch sizes."""
    from privfeat.analysis.batches import noise_by_batch_size

    sizes = [size for size in (128, 512, 2048, 8192) if size <= args.n] or [args.n]
    if args.batch is not None:
        sizes = sorted({*sizes, args.batch})
    rows = noise_by_batch_size(
        args.n, sizes, epsilon=args.epsilon, delta=args.delta, n_epochs=args.epochs
    )
    if not args.json:
        words.print_batches(args, rows)
    settings = [row._asdict() for row in rows]
    return {"n_epochs": args.epochs, "settings": settings, "more_data": None}
