"""``privfeat plan``: what a budget buys, before any private record is read."""

import argparse
from typing import TYPE_CHECKING, Any

from privfeat.cli import options
from privfeat.cli.common import CommandError, open_split, progress, single_labels

if TYPE_CHECKING:
    from privfeat.analysis.planning import Plan
    from privfeat.analysis.public_trials import Trial

_LARGE_LOSS = 0.1  # from here on too few records tell, and the estimate is too kind


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = verbs.add_parser(
        "plan",
        parents=[options.compared("on --public"), options.quiet()],
        help="what a budget buys, before private data is read",
        description="Say how noisy each estimator will be, roughly what that costs in "
        "accuracy, and what twice the data would buy. Reads no private record; with "
        "--public, tries the estimators on public features with that noise.",
    )
    parser.set_defaults(run=run)
    add = parser.add_argument
    add("--n", type=int, required=True, help="number of records")
    add("--d", type=int, required=True, help="number of features")
    add("--classes", type=int, required=True, help="number of classes")
    add("--epsilon", type=float, required=True, help="the budget")
    add(
        "--public",
        metavar="FILE[:SPLIT]",
        help="PUBLIC features of the same network, with labels: they get no protection",
    )
    add(
        "--epochs",
        type=float,
        default=10.0,
        help="for the table of batch sizes (default 10)",
    )


def run(args: argparse.Namespace) -> None:
    """Print the plan."""
    from privfeat.analysis.planning import plan

    budget = options.given(args, ("epsilon", "delta", "adjacency"))
    found = plan(args.n, args.d, args.classes, **budget)
    public = None if args.public is None else _open_public(args)
    print(_text(found))
    trials = []
    if public is not None:
        from privfeat.analysis.public_trials import run_trials

        progress(args, "fitting on public features ...")
        trials = run_trials(*public, n_samples=args.n, n_repeats=args.repeats, **budget)
    if trials:
        print(_trials_text(trials, args))
    print(_batches_text(args))
    best = max(trials, key=lambda trial: trial.accuracy).estimator if trials else None
    reason = "the best on the public features" if best else found.reason
    print(f"\nuse {best or found.recommended}: {reason}")


def _open_public(args: argparse.Namespace) -> tuple[Any, Any]:
    """Return features and labels of ``--public``; refuse it before all output."""
    split = open_split(args.public, preferred="train")
    labels = single_labels(split, args.public)
    if split.X.shape[1] != args.d:
        raise CommandError(
            f"{args.public} must have {args.d} features, as --d says, got "
            f"{split.X.shape[1]}."
        )
    return split.X[:], labels[:]


def _text(found: "Plan") -> str:
    lines = [
        f"epsilon = {found.epsilon:g}, delta = {found.delta:g}, {found.adjacency}; "
        f"{found.n_samples:,} records, {found.n_features} features, "
        f"{found.n_classes} classes",
        *(f"warning: {warning}" for warning in found.warnings()),
        "",
        "noise of every release (exact):",
    ]
    for row in found.estimators:
        lines += [
            f"  {row.estimator:15} {release.query.count:4d} x {release.query.name:13} "
            f"stddev {release.noise_stddev:10.4g}, stddev / n "
            f"{release.noise_stddev / found.n_samples:.2g}"
            for release in row.releases
        ]
    lines += [
        "",
        "expected loss of accuracy, relative, from the noise alone (rough: it assumes "
        "how far",
        "apart your classes are):",
        f"  {'':15} {'noise in a score':>18} {'loss':>8} {'with twice the data':>22}",
    ]
    for row, twice in zip(found.estimators, found.doubled, strict=True):
        lines.append(
            f"  {row.estimator:15} {row.score_noise:18.4f} "
            f"{percent(row.expected_loss):>8} {percent(twice.expected_loss):>22}"
        )
    if min(row.expected_loss for row in found.estimators) > _LARGE_LOSS:
        lines += [
            "",
            "too few records for this budget: expect worse, since few records also "
            "mean little",
            "to learn from. Take more of them, or a larger epsilon.",
        ]
    return "\n".join(lines)


def percent(value: float) -> str:
    """Return a part of one in per cent, with one digit and never ``-0.0%``."""
    return f"{round(value, 3) + 0.0:.1%}"


def _trials_text(trials: "list[Trial]", args: argparse.Namespace) -> str:
    lines = [
        "",
        f"measured on {args.public}, the noise scaled to {args.n:,} records:",
        f"  {'':15} {'accuracy':>9} {'loss':>8}",
        f"  {'without privacy':15} {percent(trials[0].non_private):>9}  (logistic "
        "regression)",
    ]
    lines += [
        f"  {trial.estimator:15} {percent(trial.accuracy):>9} {percent(trial.loss):>8}"
        for trial in trials
    ]
    return "\n".join(lines)


def _batches_text(args: argparse.Namespace) -> str:
    from privfeat.analysis.batches import noise_by_batch_size

    sizes = [size for size in (128, 512, 2048, 8192) if size <= args.n] or [args.n]
    rows = noise_by_batch_size(
        args.n, sizes, epsilon=args.epsilon, delta=args.delta, n_epochs=args.epochs
    )
    lines = [
        "",
        f"a network by DP-SGD, {args.epochs:g} epochs: larger batches, and a learning "
        "rate as many",
        "times as large (0.01 at 128 is a common start):",
        "  batch size  noise multiplier  noise per example  learning rate",
    ]
    lines += [
        f"  {row.batch_size:10d} {row.noise_multiplier:17.4g} "
        f"{row.noise_per_example:18.3g} {row.learning_rate:14g}"
        for row in rows
    ]
    return "\n".join(lines)
