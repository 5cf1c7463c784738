"""``privfeat quickstart``: every estimator at several budgets, as table and figure."""

import argparse
import json
import math
import platform
import time
import warnings
from importlib import metadata
from typing import Any

from privfeat._extras import require
from privfeat._version import __version__
from privfeat.cli import options
from privfeat.cli.common import (
    CommandError,
    make_estimator,
    output_folder,
    progress,
    single_labels,
)
from privfeat.exceptions import PrivacyWarning

_SHOWN = "DPFC"  # whose statement is printed: fixed, so as not to depend on the table
_BASELINE = "LogisticRegression"


def add_parser(verbs: Any) -> None:
    """Add this verb to the parser of the command."""
    parser = verbs.add_parser(
        "quickstart",
        parents=[options.compared("of each budget"), options.quiet()],
        help="compare all estimators at several budgets",
        description="Fit every estimator at several budgets on the split 'train' of a "
        "feature file, measure it on 'test', print a table and write accuracy.png and "
        "results.json. For public data: each fit of private data spends its budget.",
    )
    parser.set_defaults(run=run)
    add = parser.add_argument
    add(
        "features", metavar="FILE", help="feature file of public data, with class names"
    )
    add("--out", metavar="DIR", required=True, help="for the figure and the results")
    add(
        "--epsilons",
        type=float,
        nargs="+",
        default=[0.5, 1.0, 2.0, 4.0, 8.0],
        help="default: 0.5 1 2 4 8",
    )


def run(args: argparse.Namespace) -> None:
    """Fit everything, print the table and one statement, write the two files."""
    from privfeat._files import write_atomically
    from privfeat.data import open_features
    from privfeat.report import AccuracyGrid, format_grid, plot_grid

    require("the figure", "matplotlib", extra="plot")
    if not args.repeats >= 1:
        raise CommandError(f"--repeats must be >= 1, got {args.repeats}.")
    if not all(0 < epsilon < math.inf for epsilon in args.epsilons):
        raise CommandError(
            "--epsilons must be finite and > 0; infinity is always added."
        )
    file = open_features(args.features)
    train, test = file["train"], file["test"]
    if file.class_names is None:
        raise CommandError(f"{args.features} names no classes.")
    y, y_test = single_labels(train, "train"), single_labels(test, "test")
    data: Any = (train.X[:], y, test.X[:], y_test)
    (n_train, n_features), n_classes = train.X.shape, len(file.class_names)
    started = time.perf_counter()
    with output_folder(args.out) as folder:
        baseline = fit_baseline(*data)
        accuracies, shown = {}, None
        for name in options.ESTIMATORS:
            begun = time.perf_counter()
            accuracies[name], first = fit_estimator(args, n_classes, name, *data)
            shown = first if name == _SHOWN else shown
            n_fits = sum(map(len, accuracies[name].values()))
            seconds = time.perf_counter() - begun
            progress(args, f"{name}: {n_fits} fits in {seconds:.0f} s")
        seconds = time.perf_counter() - started
        title = (
            f"{n_train:,} training rows, {n_features} features, "
            f"{n_classes} classes; delta = {args.delta:g}"
        )
        grid = AccuracyGrid(accuracies, baseline, _BASELINE, title)
        report = {
            "privfeat_version": __version__,
            "data": {
                "dataset": file.metadata.get("dataset"),
                "model": file.metadata.get("model"),
                "n_train": n_train,
                "n_test": len(y_test),
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
            "statement": json.loads(shown.to_json()) if shown else None,
            "seconds": round(seconds, 1),
            "versions": _versions(),
        }
        write_atomically(folder / "accuracy.png", plot_grid(grid))
        text = json.dumps(report, indent=2, allow_nan=False) + "\n"
        write_atomically(folder / "results.json", text.encode())

    print(f"\nTest accuracy, mean of {args.repeats} fits ({grid.title})\n")
    print(format_grid(grid))
    print(
        f"\nThe column inf and {_BASELINE} are not private. To choose a row by such a "
        "table on\nprivate data would be a release of its own.\n"
    )
    print(f"What one of these fits promises, {_SHOWN} at epsilon {_shown(args):g}:\n")
    print(shown)
    print(f"\n{folder / 'accuracy.png'} and results.json written.")


def fit_baseline(X: Any, y: Any, X_test: Any, y_test: Any) -> float:
    """Return the test accuracy of a logistic regression without privacy."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return float(model.fit(X, y).score(X_test, y_test))


def fit_estimator(
    args: argparse.Namespace, n_classes: int, name: str, *data: Any
) -> tuple[dict[float, list[float]], Any]:
    """Return the accuracies by epsilon, and the statement of the shown budget."""
    X, y, X_test, y_test = data
    fixed = options.given(args, ("delta", "adjacency")) | {"classes": range(n_classes)}
    accuracies: dict[float, list[float]] = {}
    statement = None
    for epsilon in [*sorted(set(args.epsilons)), math.inf]:
        accuracies[epsilon] = []
        for _ in range(args.repeats if epsilon < math.inf else 1):
            estimator = make_estimator(name, epsilon=epsilon, **fixed)
            with warnings.catch_warnings():
                # the table names its columns, the one without privacy included
                warnings.simplefilter("ignore", PrivacyWarning)
                estimator.fit(X, y)
            accuracies[epsilon].append(float(estimator.score(X_test, y_test)))
        if epsilon == _shown(args):
            statement = estimator.privacy_
    return accuracies, statement


def _shown(args: argparse.Namespace) -> float:
    """Return the budget whose statement is printed: 1 if it is there."""
    return 1.0 if 1.0 in args.epsilons else min(args.epsilons)


def _versions() -> dict[str, str]:
    names = ("jax", "numpy", "scikit-learn", "dp-accounting")
    versions = {name: metadata.version(name) for name in names}
    return {"python": platform.python_version(), **versions}
