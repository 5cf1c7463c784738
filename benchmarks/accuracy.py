"""How accurate are the untuned estimators at each epsilon?

Fits every estimator with its defaults on the split ``train`` of feature files and
prints the test accuracy, mean and standard error over several fits:

    python benchmarks/accuracy.py cifar10.h5 --repeats 5 --out accuracy.json
"""

import argparse
import math
import time
import warnings
from pathlib import Path

import numpy as np
from _results import markdown_table, write_json
from sklearn.linear_model import LogisticRegression

import privfeat

ESTIMATORS = ("DPFC", "DPLeastSquares", "DPAdamLinear", "DPNewton")


def main() -> None:
    """Print one table for each feature file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", nargs="+", type=Path)
    parser.add_argument(
        "--epsilons", nargs="+", type=float, default=[0.1, 0.5, 1, 2, 8]
    )
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--estimators", nargs="+", default=list(ESTIMATORS))
    parser.add_argument("--baseline", action="store_true", help="non-private as well")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    results = {str(path.stem): measure(path, args) for path in args.features}
    if args.out:
        write_json(args.out, {"delta": args.delta, "accuracy": results})


def measure(path: Path, args: argparse.Namespace) -> dict[str, dict[str, object]]:
    """Print the table of one feature file and return its numbers."""
    file = privfeat.open_features(path)
    train, test = file["train"], file["test"]
    X, y, X_test, y_test = train.X[:], train.y, test.X[:], test.y
    shape = f"n={X.shape[0]}, d={X.shape[1]}, m={len(file.class_names)}"
    print(f"\n{path.stem}: {shape}, delta={args.delta:g}, {args.repeats} fits a cell\n")
    cells: dict[str, dict[str, object]] = {}
    rows = []
    for name in args.estimators:
        estimator = getattr(privfeat, name)
        cells[name], row = {}, [name]
        for epsilon in args.epsilons:
            start = time.perf_counter()
            scores = [
                estimator(
                    epsilon=epsilon,
                    delta=args.delta,
                    classes=range(len(file.class_names)),
                )
                .fit(X, y)
                .score(X_test, y_test)
                for _ in range(args.repeats)
            ]
            seconds = (time.perf_counter() - start) / args.repeats
            error = np.std(scores, ddof=1) / math.sqrt(len(scores)) if scores[1:] else 0
            cells[name][f"{epsilon:g}"] = {"scores": scores, "seconds": seconds}
            row.append(f"{100 * np.mean(scores):.2f} ± {100 * error:.2f}")
            print(f"  {name} epsilon={epsilon:g}: {row[-1]} ({seconds:.1f} s a fit)")
        rows.append(row)
    if args.baseline:
        scale = np.linalg.norm(X.astype(np.float32), axis=1, keepdims=True)
        scale_test = np.linalg.norm(X_test.astype(np.float32), axis=1, keepdims=True)
        model = LogisticRegression(C=100.0, max_iter=300).fit(X / scale, y)
        score = model.score(X_test / scale_test, y_test)
        cells["non-private"] = {"inf": {"scores": [score]}}
        rows.append(["non-private"] + [f"{100 * score:.2f}"] * len(args.epsilons))
    print()
    print(markdown_table(["epsilon", *(f"{e:g}" for e in args.epsilons)], rows))
    return cells


if __name__ == "__main__":
    main()
