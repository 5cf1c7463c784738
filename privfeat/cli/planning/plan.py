"""``privfeat plan``: what a budget buys, before private data is read.

Print how noisy each estimator will be, roughly what that costs in accuracy, what more
data would buy, and which estimator to use. Read no private record. With --public, try
the estimators on public features with that noise. Without --d, plan a network.
For example

    privfeat plan --n 50000 --d 768 --classes 100 --epsilon 1
    privfeat plan --n 5000 --columns columns.toml --target diagnosis --epsilon 1
"""

import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from privfeat.cli.shared import files, options, tables, terminal
from privfeat.cli.shared.terminal import CommandError

if TYPE_CHECKING:
    from privfeat.analysis.planning import Outlook
    from privfeat.analysis.public_trials import Trial

_LARGE_LOSS = 0.1  # from here on the estimate is too optimistic
_MANY_FEATURES = """
fewer than ten records for each feature: the true loss is larger, perhaps many times.
Measure it on public rows like yours: --public FILE."""
_TOO_FEW = """
too few records for this budget: expect worse, since few records also mean little
to learn from. Take more of them, or a larger epsilon."""
_ALONE = """
where the public rows have your classes, a model of them alone has about {}, and
costs no privacy: if that is enough, fit no record. As prior= of DPFC it helps a fit to
few records, which this table does not show: then use DPFC, whatever is best here."""
_LOSSES = f"""
expected loss of accuracy, relative, from the noise alone (rough: it assumes how far
apart your classes are, and that they are equally common; of a rare class it says too
little: what counts there is how many records it has):
  {"":15} {"noise in a score":>18} {"loss":>8} {"with more data":>16}"""


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = options.verb(verbs, run, options.compared())
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
    from privfeat.analysis.planning import plan

    declared = tables.declared_by(args)
    _set_sizes(args, declared)
    if args.d is None:
        _print_budget(args, "a network")
        _print_batches(args)
        return
    budget = options.given(args, ("epsilon", "delta", "adjacency"))
    if args.classes is None:
        _plan_regressor(args, budget, declared)
        return
    sizes = (args.n, args.d, args.classes)
    found = plan(*sizes, **budget, data_factor=args.data_factor)
    best, reason = found.recommended, found.reason
    # what can be refused is, before anything is printed
    public = None if args.public is None else _open_public(args, declared)
    _print_noise(args, found)
    if public is not None:
        from privfeat.analysis.public_trials import run_trials

        terminal.progress(args, "fitting on public features ...")
        trials = run_trials(*public, n_samples=args.n, n_repeats=args.repeats, **budget)
        _print_trials(trials, args)
        best = max(trials, key=lambda trial: trial.accuracy).estimator
        reason = "the best on the public features"
    if declared is None or args.batch is not None:  # few train networks on tables
        _print_batches(args)
    if public is None and hopeless(found):
        reason = f"{reason}, though no estimator learns much from so little"
    print(f"\nuse {best}: {reason}")


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


def _plan_regressor(
    args: Namespace, budget: dict[str, Any], declared: "tables.Declared | None"
) -> None:
    """Print the noise of a regressor of a table."""
    from privfeat.cli.shared.estimators import make_estimator

    if declared is None or args.public is not None:
        raise CommandError("--public must not be given for a target of numbers.")
    (name,) = options.REGRESSORS
    given = {**declared.settings, "target_bounds": declared.target_bounds, **budget}
    plan = make_estimator(name, given).planned(args.d)
    _print_budget(args, f"{args.d} features, a number to predict")
    print("\nnoise of every release (exact):")
    _print_releases(name, plan.releases, args.n)
    print(f"\nuse {name}: the estimator of numbers")


def _print_budget(args: Namespace, what: str) -> None:
    from privfeat.analysis.planning import delta_warnings

    print(
        f"epsilon = {args.epsilon:g}, delta = {args.delta:g}, {args.adjacency}; "
        f"{args.n:,} records, {what}"
    )
    for warning in delta_warnings(args.delta, args.n):
        print(f"warning: {warning}")


def _print_releases(name: str, releases: Any, n_samples: int) -> None:
    for release in releases:
        query, stddev = release.query, release.noise_stddev
        print(
            f"  {name:15} {query.count:4d} x {query.name:13} stddev "
            f"{stddev:10.4g}, stddev / n {stddev / n_samples:.2g}"
        )


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


def _print_noise(args: Namespace, found: "Outlook") -> None:
    _print_budget(args, f"{args.d} features, {args.classes} classes")
    print("\nnoise of every release (exact):")
    for row in found.estimators:
        _print_releases(row.estimator, row.releases, found.n_samples)
    print(_LOSSES)
    few = found.n_samples < 10 * found.n_features
    above = "> " if few else ""
    for row, more in zip(found.estimators, found.more_data, strict=True):
        now, then = (f"{above}{percent(one.expected_loss)}" for one in (row, more))
        print(f"  {row.estimator:15} {row.score_noise:18.4f} {now:>8} {then:>16}")
    print(
        f"more data: {found.data_factor:g} times the records; with them, epsilon "
        f"{found.same_noise_epsilon:.3g} would give the loss of now"
    )
    if hopeless(found):
        print(_TOO_FEW)
    elif few:
        print(_MANY_FEATURES)
    sys.stdout.flush()  # what follows takes longer


def hopeless(found: "Outlook") -> bool:
    """Return whether noise alone spoils what every estimator predicts."""
    return min(row.expected_loss for row in found.estimators) > _LARGE_LOSS


def percent(value: float) -> str:
    """Return a part of one in per cent, with one digit and never ``-0.0%``."""
    return f"{round(value, 3) + 0.0:.1%}"


def _print_trials(trials: "list[Trial]", args: Namespace) -> None:
    terminal.warn(
        f"the accuracies on {args.public} are exact and protect none of its rows: pass "
        "public ones alone."
    )
    print(f"\nmeasured on {args.public}, the noise scaled to {args.n:,} records:")
    print(f"  {'':15} {'accuracy':>9} {'points lost':>12}")
    plain = percent(trials[0].non_private)
    print(f"  {'without privacy':15} {plain:>9}  (logistic regression)")
    for trial in trials:
        lost = f"{100 * trial.loss:.1f}"
        print(f"  {trial.estimator:15} {percent(trial.accuracy):>9} {lost:>12}")
    print(_ALONE.format(plain))


def _print_batches(args: Namespace) -> None:
    from privfeat.analysis.batches import noise_by_batch_size
    from privfeat.analysis.tan import TAN

    sizes = [size for size in (128, 512, 2048, 8192) if size <= args.n] or [args.n]
    if args.batch is not None:
        sizes = sorted({*sizes, args.batch})
    rows = noise_by_batch_size(
        args.n, sizes, epsilon=args.epsilon, delta=args.delta, n_epochs=args.epochs
    )
    print(
        f"\na network by DP-SGD, {args.epochs:g} epochs: larger batches, and a "
        "learning rate as many\ntimes as large (0.01 at 128 is a common start):\n"
        "  batch size  noise multiplier  noise per example  learning rate"
    )
    for row in rows:
        print(
            f"  {row.batch_size:10d} {row.noise_multiplier:17.4g} "
            f"{row.noise_per_example:18.3g} {row.learning_rate:14g}"
        )
    if args.d is None:
        chosen = args.batch or sizes[-1]
        row = next(row for row in rows if row.batch_size == chosen)
        now = TAN(row.batch_size / args.n, row.noise_multiplier, row.n_iter)
        more = now.with_more_data(args.data_factor)
        epsilon = more.epsilon(args.delta / args.data_factor, accountant="rdp")
        print(
            f"more data: {args.data_factor:g} times the records, the same steps of "
            f"{row.batch_size} records: epsilon {epsilon:.3g}"
        )
