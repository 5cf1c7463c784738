"""``privfeat quickstart``: compare all estimators at several budgets.

Fit every estimator at several budgets on the split 'train' of a feature file, measure
it on 'test', print a table and write accuracy.png and results.json. For public data:
each fit of private data spends its budget. For example

    privfeat quickstart digits.h5 --out results
"""

import json
import math
import platform
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from importlib import metadata
from io import BytesIO
from statistics import fmean
from typing import TYPE_CHECKING, Any

from privfeat._checks import require
from privfeat._version import __version__
from privfeat.cli.shared import estimators, files, options, terminal
from privfeat.cli.shared.terminal import CommandError
from privfeat.exceptions import PrivacyWarning

if TYPE_CHECKING:
    from privfeat.analysis.utility import PrivacyUtilityDisplay

_SHOWN = "DPFC"  # its statement is printed: fixed, so that the table does not choose it
_BASELINE = "LogisticRegression"
_PACKAGES = ("jax", "numpy", "scikit-learn", "dp-accounting")


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    add = options.verb(verbs, run, options.compared()).add_argument
    add("features", metavar="FILE", help="public features, with class names")
    add("--out", metavar="DIR", required=True, help="for the figure and the results")
    epsilons = [0.5, 1.0, 2.0, 4.0, 8.0]
    told = "default 0.5 1 2 4 8"
    add("--epsilons", type=float, nargs="+", default=epsilons, help=told)


def run(args: Namespace) -> None:
    """Fit everything, print the table and one statement, write the two files."""
    from privfeat._files import write_atomically
    from privfeat._messages import without_warnings
    from privfeat.analysis.utility import PrivacyUtilityDisplay, measure_utility
    from privfeat.data import open_features

    require("the figure", "matplotlib", extra="plot")
    if not args.repeats >= 1:
        raise CommandError(f"--repeats must be >= 1, got {args.repeats}.")
    if not all(0 < epsilon < math.inf for epsilon in args.epsilons):
        raise CommandError(
            "--epsilons must be finite and > 0; infinity is always added."
        )
    file = open_features(args.features)
    train, test = (
        files.open_split(f"{args.features}:{name}", name, one_label=True)
        for name in ("train", "test")
    )
    if file.class_names is None:
        raise CommandError(f"{args.features} names no classes.")
    data: Any = (train.X[:], train.y, test.X[:], test.y)
    (n_train, n_features), n_classes = train.X.shape, len(file.class_names)
    fixed = options.given(args, ("delta", "adjacency")) | {"classes": range(n_classes)}
    budgets, started = sorted(set(args.epsilons)), time.perf_counter()
    shown_epsilon = 1.0 if 1.0 in budgets else budgets[0]
    # the table names its columns, the one without privacy included
    with files.output_folder(args.out) as folder, without_warnings(PrivacyWarning):
        baseline = fit_baseline(*data)
        noisy: dict[str, Any] = {}
        free: dict[str, Any] = {}
        accuracies = {}
        for name in options.ESTIMATORS:
            terminal.progress(args, f"fitting {name} ...")
            estimator = {name: estimators.make_estimator(name, fixed)}
            noisy |= measure_utility(estimator, budgets, *data, n_repeats=args.repeats)
            free |= measure_utility(estimator, [math.inf], *data, n_repeats=1)
            rows = [*noisy[name].accuracy.tolist(), *free[name].accuracy.tolist()]
            accuracies[name] = dict(zip([*budgets, math.inf], rows, strict=True))
        params = fixed | {"epsilon": shown_epsilon}
        shown = estimators.make_estimator(_SHOWN, params).fit(*data[:2]).privacy_
        title = (
            f"{n_train:,} training rows, {n_features} features, "
            f"{n_classes} classes; delta = {args.delta:g}"
        )
        versions = {name: metadata.version(name) for name in _PACKAGES}
        report = {
            "privfeat_version": __version__,
            "data": {
                "dataset": file.metadata.get("dataset"),
                "model": file.metadata.get("model"),
                "n_train": n_train,
                "n_test": len(test.y),
                "n_features": n_features,
                "n_classes": n_classes,
            },
            "delta": args.delta,
            "adjacency": args.adjacency,
            "test_accuracy": {
                name: {f"{epsilon:g}": values for epsilon, values in cells.items()}
                for name, cells in accuracies.items()
            },
            "baseline": {"method": _BASELINE, "test_accuracy": baseline},
            "statement": json.loads(shown.to_json()),
            "seconds": round(time.perf_counter() - started, 1),
            "versions": {"python": platform.python_version(), **versions},
        }
        curves = PrivacyUtilityDisplay(
            budgets, noisy, without_privacy=free, baseline=(_BASELINE, baseline)
        )
        write_atomically(folder / "accuracy.png", _figure(curves, title))
        text = json.dumps(report, indent=2, allow_nan=False) + "\n"
        write_atomically(folder / "results.json", text.encode())

    print(f"\nTest accuracy, mean of {args.repeats} fits ({title})\n")
    print(format_table(accuracies, (_BASELINE, baseline)))
    print(
        f"\nThe column inf and {_BASELINE} are not private. On private data, to choose "
        "a row by\nsuch a table would be one more release.\n"
    )
    print(f"What one of these fits promises, {_SHOWN} at epsilon {shown_epsilon:g}:\n")
    print(shown)
    print(f"\n{folder / 'accuracy.png'} and results.json written.")


def format_table(
    accuracies: Mapping[str, Mapping[float, Sequence[float]]],
    baseline: tuple[str, float],
) -> str:
    """Return mean accuracies by estimator and epsilon, the last without privacy."""
    epsilons = list(next(iter(accuracies.values())))
    rows = [["epsilon", *(f"{epsilon:g}" for epsilon in epsilons)]]
    for name, cells in accuracies.items():
        rows.append([name, *(f"{fmean(cells[e]):.3f}" for e in epsilons)])
    rows.append([baseline[0], *[""] * (len(epsilons) - 1), f"{baseline[1]:.3f}"])
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return "\n".join(
        f"{name:{first}}"
        + "".join(f"  {cell:>{n}}" for cell, n in zip(cells, others, strict=True))
        for name, *cells in rows
    )


def _figure(display: "PrivacyUtilityDisplay", title: str) -> bytes:
    """Return a PNG of a display; it is drawn without a screen."""
    from matplotlib.figure import Figure

    figure, buffer = Figure(figsize=(10.0, 4.6), layout="constrained"), BytesIO()
    display.plot(figure.subplots(1, 2))
    figure.suptitle(title, fontsize=11)
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def fit_baseline(X: Any, y: Any, X_test: Any, y_test: Any) -> float:
    """Return the test accuracy of a logistic regression without privacy."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return float(model.fit(X, y).score(X_test, y_test))
