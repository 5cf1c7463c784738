"""When does a private search pay?

At the same total epsilon: the defaults, a single candidate drawn at random, and the
best of a random number of candidates (DPRandomizedSearch). Test accuracy, mean and
standard error over several fits, on feature files or the digits of scikit-learn:

    python benchmarks/selection.py cifar10.h5 --epsilons 0.5 1 8 --out selection.json
"""

import argparse
import math
import time
import warnings
from pathlib import Path

import numpy as np
from _results import keep_tables, markdown_table, write_json
from sklearn.datasets import load_digits
from sklearn.model_selection import ParameterSampler, train_test_split

import privfeat

# Wide, as someone would search who knows nothing of the data.
CANDIDATES = {
    "DPFC": {"learning_rate": [0.1, 1.0, 4.0, 8.0], "n_iter": [10, 30, 100]},
    "DPAdamLinear": {"learning_rate": [0.001, 0.01, 0.1, 1.0], "n_iter": [30, 100]},
    "DPLeastSquares": {"ridge": [1e-1, 1e0, 1e1, 1e2, 1e3, 1e4]},
}


def main() -> None:
    """Print one table for each data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", nargs="*", type=Path, help="default: the digits")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1, 2, 8])
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--mean-runs", type=float, default=10.0)
    parser.add_argument("--eta", type=float, default=1.0)
    parser.add_argument("--estimators", nargs="+", default=list(CANDIDATES))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    results = {}
    for path in args.features or [None]:
        name = "digits" if path is None else path.stem
        results[name] = measure(name, read(path), args)
    if args.out:
        settings = {name: getattr(args, name) for name in ("delta", "mean_runs", "eta")}
        write_json(args.out, settings | {"scores": results})
    keep_tables(args.out)


def read(path: Path | None) -> tuple[np.ndarray, ...]:
    """Return X, y, X_test, y_test."""
    if path is None:
        X, y = load_digits(return_X_y=True)
        X, X_test, y, y_test = train_test_split(X, y, test_size=360, random_state=0)
        return X, y, X_test, y_test
    file = privfeat.open_features(path)
    train, test = file["train"], file["test"]
    return train.X[:], np.asarray(train.y), test.X[:], np.asarray(test.y)


def measure(
    name: str, data: tuple[np.ndarray, ...], args: argparse.Namespace
) -> dict[str, dict[str, list[float]]]:
    """Print the table of one data set and return its scores."""
    X, y, X_test, y_test = data
    print(f"\n{name}: n={X.shape[0]}, d={X.shape[1]}, {args.repeats} fits a cell\n")
    cells: dict[str, dict[str, list[float]]] = {}
    for estimator in args.estimators:
        base = getattr(privfeat, estimator)(classes=np.unique(y))
        grid = CANDIDATES[estimator]
        budgets = [{"epsilon": e, "delta": args.delta} for e in args.epsilons]
        makers = {
            "defaults": lambda budget, base=base: base.set_params(**budget),
            "random candidate": lambda budget, base=base, grid=grid: type(base)(
                classes=base.classes,
                **budget,
                **next(iter(ParameterSampler(grid, 1))),
            ),
            "search": lambda budget, base=base, grid=grid: privfeat.DPRandomizedSearch(
                base, grid, mean_runs=args.mean_runs, eta=args.eta, **budget
            ),
        }
        for how, make in makers.items():
            start = time.perf_counter()
            row = {
                f"{budget['epsilon']:g}": [
                    make(budget).fit(X, y).score(X_test, y_test)
                    for _ in range(args.repeats)
                ]
                for budget in budgets
            }
            cells[f"{estimator}, {how}"] = row
            print(f"  {estimator}, {how}: {time.perf_counter() - start:.1f} s")
    rows = [[how, *map(percent, row.values())] for how, row in cells.items()]
    print()
    header = ["epsilon", *(f"{e:g}" for e in args.epsilons)]
    print(markdown_table(header, rows, name))
    return cells


def percent(scores: list[float]) -> str:
    """Return mean and standard error."""
    error = np.std(scores, ddof=1) / math.sqrt(len(scores)) if scores[1:] else 0.0
    return f"{100 * np.mean(scores):.1f} ± {100 * error:.1f}"


if __name__ == "__main__":
    main()
