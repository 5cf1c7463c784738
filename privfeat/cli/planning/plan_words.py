"""What ``privfeat plan`` prints, in words and tables."""

import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privfeat.analysis.batches import BatchSetting
    from privfeat.analysis.planning import Outlook
    from privfeat.analysis.public_trials import Trial

_LARGE_LOSS = 0.1  # from here on the estimate is too optimistic
_MANY_FEATURES = """\
fewer than ten records for each feature: the true loss is larger, perhaps many times.
Measure it on public rows like yours: --public FILE."""
_TOO_FEW = """\
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


def print_budget(args: Namespace, what: str, warnings: tuple[str, ...]) -> None:
    """Print what the plan is for."""
    print(
        f"epsilon = {args.epsilon:g}, delta = {args.delta:g}, {args.adjacency}; "
        f"{args.n:,} records, {what}"
    )
    for warning in warnings:
        print(f"warning: {warning}")


def print_releases(name: str, releases: Any, n_samples: int) -> None:
    """Print the noise of one estimator."""
    for release in releases:
        query, stddev = release.query, release.noise_stddev
        print(
            f"  {name:15} {query.count:4d} x {query.name:13} stddev "
            f"{stddev:10.4g}, stddev / n {stddev / n_samples:.2g}"
        )


def print_noise(found: "Outlook") -> None:
    """Print noise and expected loss of each estimator, and what more data would buy."""
    print("\nnoise of every release (exact):")
    for row in found.estimators:
        print_releases(row.estimator, row.releases, found.n_samples)
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
    if caution := caution_of(found):
        print(f"\n{caution}")
    sys.stdout.flush()  # what follows takes longer


def caution_of(found: "Outlook") -> str:
    """Return why the expected loss is too optimistic, or nothing."""
    if hopeless(found):
        return _TOO_FEW
    return _MANY_FEATURES if found.n_samples < 10 * found.n_features else ""


def hopeless(found: "Outlook") -> bool:
    """Return whether noise alone spoils what every estimator predicts."""
    return min(row.expected_loss for row in found.estimators) > _LARGE_LOSS


def percent(value: float) -> str:
    """Return a part of one in per cent, with one digit and never ``-0.0%``."""
    return f"{round(value, 3) + 0.0:.1%}"


def print_trials(trials: "list[Trial]", args: Namespace) -> None:
    """Print what was measured on public rows."""
    print(f"\nmeasured on {args.public}, the noise scaled to {args.n:,} records:")
    print(f"  {'':15} {'accuracy':>9} {'points lost':>12}")
    plain = percent(trials[0].non_private)
    print(f"  {'without privacy':15} {plain:>9}  (logistic regression)")
    for trial in trials:
        lost = f"{100 * trial.loss:.1f}"
        print(f"  {trial.estimator:15} {percent(trial.accuracy):>9} {lost:>12}")
    print(_ALONE.format(plain))


def print_batches(args: Namespace, rows: "list[BatchSetting]") -> None:
    """Print settings of a network for some batch sizes."""
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
