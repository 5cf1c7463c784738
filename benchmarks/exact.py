"""What does the exact mode cost?

Time of a fit with ``arithmetic="exact"`` over that of the default, on random rows, and
draws per second of the noise alone; then test accuracy in both, mean and standard error
over several fits, on feature files or the digits of scikit-learn:

    python benchmarks/exact.py --out exact.json
    python benchmarks/exact.py cifar10.h5 --epsilons 0.5 1 8 --repeats 20
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _results import keep_tables, markdown_table, write_json
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import privfeat
from privfeat.core.noise.discrete import discrete_gaussian
from privfeat.core.noise.keys import KeyStream

ARITHMETICS = ("float64", "exact")


def main() -> None:
    """Print one table of times, and one of accuracies for each data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", nargs="*", type=Path, help="default: the digits")
    parser.add_argument("--estimators", nargs="+", default=["DPFC"])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--columns", type=int, default=768)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1, 8])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-times", dest="times", action="store_false")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    results: dict[str, Any] = {}
    if args.times:
        results["draws_per_second"] = draws_per_second()
        print(f"{results['draws_per_second'] / 1e6:.1f} million exact draws per second")
        results["seconds"] = times(args)
    for path in args.features or [None]:
        name = "digits" if path is None else path.stem
        results[name] = accuracies(name, read(path), args)
    if args.out:
        write_json(args.out, results)
    keep_tables(args.out)


def draws_per_second() -> float:
    """Return the speed of the noise alone, at the stddev of a Gram matrix."""
    size = 2_000_000
    return size / seconds(lambda: discrete_gaussian(KeyStream(None), (size,), 2**82))


def times(args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Print and return the least time of a fit, each arithmetic in turn."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(args.rows, args.columns)).astype(np.float32)
    y = rng.integers(0, args.classes, args.rows)
    found: dict[str, dict[str, float]] = {}
    for name in args.estimators:
        cls = getattr(privfeat, name)
        options: dict[str, Any] = {"classes": range(args.classes)}
        if "n_iter" in cls().get_params():
            options["n_iter"] = args.steps
        best = dict.fromkeys(ARITHMETICS, math.inf)
        for _ in range(args.repeats + 1):  # the first compiles
            for arithmetic in ARITHMETICS:
                model = cls(arithmetic=arithmetic, **options)
                took = seconds(lambda model=model: model.fit(X, y))
                best[arithmetic] = min(best[arithmetic], took)
        found[name] = best
    print(f"\nn={args.rows}, d={args.columns}, m={args.classes}, T={args.steps}\n")
    rows = [
        [name, *(f"{t:.2f}" for t in best.values()), f"{ratio(best):.2f}"]
        for name, best in found.items()
    ]
    print(markdown_table(["seconds of a fit", *ARITHMETICS, "ratio"], rows, "times"))
    return found


def accuracies(
    name: str, data: tuple[np.ndarray, ...], args: argparse.Namespace
) -> dict[str, dict[str, list[float]]]:
    """Print the accuracies on one data set and return them."""
    X, y, X_test, y_test = data
    print(f"\n{name}: n={X.shape[0]}, d={X.shape[1]}, {args.repeats} fits a cell\n")
    cells = {}
    for estimator in args.estimators:
        make = getattr(privfeat, estimator)
        for arithmetic in ARITHMETICS:
            options = {"classes": np.unique(y), "arithmetic": arithmetic}
            cells[f"{estimator}, {arithmetic}"] = {
                f"{epsilon:g}": [
                    make(epsilon=epsilon, **options).fit(X, y).score(X_test, y_test)
                    for _ in range(args.repeats)
                ]
                for epsilon in args.epsilons
            }
    rows = [[how, *map(percent, row.values())] for how, row in cells.items()]
    header = ["epsilon", *(f"{e:g}" for e in args.epsilons)]
    print(markdown_table(header, rows, name))
    return cells


def read(path: Path | None) -> tuple[np.ndarray, ...]:
    """Return X, y, X_test, y_test."""
    if path is None:
        X, y = load_digits(return_X_y=True)
        X, X_test, y, y_test = train_test_split(X, y, test_size=360, random_state=0)
        return X, y, X_test, y_test
    file = privfeat.open_features(path)
    train, test = file["train"], file["test"]
    return train.X[:], np.asarray(train.y), test.X[:], np.asarray(test.y)


def seconds(work: Callable[[], Any]) -> float:
    """Return how long the call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ratio(best: dict[str, float]) -> float:
    """Return the time of the exact mode over that of the default."""
    return best["exact"] / best["float64"]


def percent(scores: list[float]) -> str:
    """Return mean and standard error."""
    error = np.std(scores, ddof=1) / math.sqrt(len(scores)) if scores[1:] else 0.0
    return f"{100 * np.mean(scores):.2f} ± {100 * error:.2f}"


if __name__ == "__main__":
    main()
