"""How accurate are the untuned estimators at each epsilon, beside tuned methods?

Fits every estimator with its defaults on the split ``train`` of feature files and
prints the test accuracy, mean and standard error over several fits:

    python benchmarks/accuracy.py cifar10.h5 --repeats 5 --baseline --out accuracy.json

Cells that the file of ``--out`` holds already are not fitted again. Methods measured by
other scripts stand beside them: the best of the tuned methods of the paper on one set,
which the last line compares DPFC with, and files of {set: {epsilon: [scores]}}:

    python benchmarks/reproduce_tables.py cifar10.h5 --rows unit --out tuned.json
    python benchmarks/dpsgd.py cifar10.h5 --out dpsgd.json
    python benchmarks/accuracy.py cifar10.h5 --out accuracy.json --baseline \
        --tuned tuned.json --beside "DP-SGD (opacus)=dpsgd.json"

Without feature files it prints what was measured: the tables of all results on
accuracy, of views, priors, few records, rare classes, users and regression too, each
below the command that makes it again. Their cells are means of five fits or more, but
for ``texts.json`` and ``overlap.json``, of three, and DP-SGD, of three or, where no
error stands, one: these fits are long.
"""

import argparse
import json
import math
import shlex
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _results import RESULTS, keep_tables, markdown_table, write_json
from sklearn.linear_model import LogisticRegression
from table import render

import privfeat

# What measures accuracy.
SCRIPTS = (
    "accuracy",
    "dpsgd_accuracy",
    "few",
    "intervals",
    "leaderboard",
    "overlap",
    "positives",
    "prior",
    "prior_bars",
    "public",
    "rare",
    "rare_centers",
    "recovery",
    "regression",
    "regression_prior",
    "rivals",
    "texts",
    "thresholds",
    "users",
    "views",
)
ESTIMATORS = ("DPFC", "DPLeastSquares", "DPAdamLinear", "DPNewton")
TUNED = "best tuned method of the paper"
BASELINE = "non-private"
Cells = dict[str, dict[str, list[float]]]


def main() -> None:
    """Print one table for each feature file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("features", nargs="*", type=Path)
    parser.add_argument(
        "--epsilons", nargs="+", type=float, default=[0.1, 0.5, 1, 2, 8]
    )
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--estimators", nargs="*", default=list(ESTIMATORS))
    parser.add_argument("--baseline", action="store_true", help="non-private as well")
    parser.add_argument("--tuned", type=Path, help="from reproduce_tables.py")
    parser.add_argument("--beside", nargs="*", default=[], metavar="NAME=FILE")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if not args.features:
        print_results()
        return
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    results: dict[str, Cells] = {}
    if args.out and args.out.exists():
        content = json.loads(args.out.read_text(encoding="utf-8"))
        results = content.get("accuracy", {})
    for path in args.features:
        fit_missing(path, results.setdefault(path.stem, {}), results, args)
        print_table(path.stem, results[path.stem], args)
    keep_tables(args.out)


def print_results() -> None:
    """Print the tables of `SCRIPTS` that `RESULTS` holds, and the command of each."""
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        if Path(shlex.split(result["command"])[1]).stem in SCRIPTS:
            for name in result["tables"]:
                print(f"{path.name}: {name}\n\n{render(result, name)}")


def fit_missing(
    path: Path, cells: Cells, results: dict[str, Cells], args: argparse.Namespace
) -> None:
    """Fit what ``cells`` lacks, and write every cell when it is done."""
    file = privfeat.open_features(path)
    train, test = file["train"], file["test"]
    X, y, X_test, y_test = train.X[:], train.y, test.X[:], test.y
    classes = range(len(file.class_names))
    print(f"\n{path.stem}: n={X.shape[0]}, d={X.shape[1]}, m={len(classes)}")
    wanted: list[tuple[str, str]] = [
        (name, f"{epsilon:g}") for name in args.estimators for epsilon in args.epsilons
    ]
    if args.baseline:
        wanted.append((BASELINE, "inf"))
    for name, epsilon in wanted:
        if epsilon in cells.get(name, {}):
            continue
        start = time.perf_counter()
        if name == BASELINE:
            scores, n_fits = [non_private(X, y, X_test, y_test)], 1
        else:
            n_fits = args.repeats
            scores = [
                getattr(privfeat, name)(
                    epsilon=float(epsilon), delta=args.delta, classes=classes
                )
                .fit(X, y)
                .score(X_test, y_test)
                for _ in range(n_fits)
            ]
        seconds = (time.perf_counter() - start) / n_fits
        cells.setdefault(name, {})[epsilon] = scores
        print(f"  {name} at {epsilon}: {shown(scores)} ({seconds:.1f} s a fit)")
        if args.out:
            write_json(args.out, {"delta": args.delta, "accuracy": results})


def non_private(X: Any, y: Any, X_test: Any, y_test: Any) -> float:
    """Return the better test accuracy of two weak penalties, rows of unit norm."""
    X, X_test = (
        rows / np.linalg.norm(rows, axis=1, keepdims=True)
        for rows in (X.astype(np.float32), X_test.astype(np.float32))
    )
    return max(
        LogisticRegression(C=C, max_iter=300).fit(X, y).score(X_test, y_test)
        for C in (10.0, 100.0)
    )


def print_table(name: str, cells: Cells, args: argparse.Namespace) -> None:
    """Print one row for each method, and what DPFC recovers."""
    epsilons = [f"{epsilon:g}" for epsilon in args.epsilons]
    table = {method: cells[method] for method in (*args.estimators,) if method in cells}
    if args.tuned:
        table[TUNED] = best_tuned(json.loads(args.tuned.read_text(encoding="utf-8")))
    for method, file in (given.split("=", 1) for given in args.beside):
        content = json.loads(Path(file).read_text(encoding="utf-8"))
        table[method] = content.get(name, {})
    rows = [
        [method, *(shown(found[e]) if e in found else "-" for e in epsilons)]
        for method, found in table.items()
    ]
    if BASELINE in cells:
        rows.append([BASELINE] + [shown(cells[BASELINE]["inf"])] * len(epsilons))
    print()
    print(markdown_table(["epsilon", *epsilons], rows, name))
    if BASELINE not in cells or not {"DPFC", TUNED} <= set(table):
        return
    best = np.mean(cells[BASELINE]["inf"])
    recovered = {
        e: (np.mean(table["DPFC"][e]) - np.mean(table[TUNED][e]))
        / (best - np.mean(table[TUNED][e]))
        for e in epsilons
        if e in table[TUNED] and np.mean(table[TUNED][e]) < best
    }
    print(f"\nDPFC recovers of the distance from {TUNED} to {BASELINE}:")
    print(", ".join(f"{100 * part:.0f} % at {e}" for e, part in recovered.items()))
    print(f"mean: {100 * np.mean(list(recovered.values())):.0f} %")


def best_tuned(result: dict[str, Any]) -> dict[str, list[float]]:
    """Return the scores of the best method and number of epochs at each epsilon."""
    best: dict[str, list[float]] = {}
    for cell in result["cells"].values():
        epsilon = f"{cell['epsilon']:g}"
        if np.mean(cell["scores"]) > np.mean(best.get(epsilon, [0.0])):
            best[epsilon] = cell["scores"]
    return best


def shown(scores: list[float]) -> str:
    """Return mean and standard error in percent."""
    mean = f"{100 * np.mean(scores):.2f}"
    if len(scores) == 1:
        return mean
    return f"{mean} ± {100 * np.std(scores, ddof=1) / math.sqrt(len(scores)):.2f}"


if __name__ == "__main__":
    main()
