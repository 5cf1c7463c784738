"""Do few large steps reach what many small ones reach, and in which time?

Fits `DPFC` and `DPAdamLinear` with their defaults and with the longer fits that were
the defaults before, in turn in one process, on the split ``train`` of feature files,
and prints the test accuracy of the longer fits, by how many points the defaults are
above them, and how many times faster they are:

    python benchmarks/steps.py cifar10.h5 digits.h5 --repeats 5 20 --out steps.json

Bar: no cell 0.2 points below, the mean not below, at least four times faster.
"""

import argparse
import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import optax
from _results import keep_tables, markdown_table, write_json

import privfeat

# The same noise is spread over the steps, whatever their number.
ADAM = optax.adam(0.75 / math.sqrt(50))
LONGER: dict[str, dict[str, Any]] = {
    "DPFC": {"n_iter": 100, "learning_rate": 4.0},
    "DPAdamLinear": {"n_iter": 50, "optimizer": ADAM},
}


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("features", nargs="+", type=Path)
    parser.add_argument(
        "--epsilons", nargs="+", type=float, default=[0.1, 0.5, 1, 2, 8]
    )
    parser.add_argument("--repeats", nargs="+", type=int, default=[5], help="per file")
    parser.add_argument("--estimators", nargs="+", choices=LONGER, default=[*LONGER])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    n_files = len(args.features)
    repeats = args.repeats * n_files if len(args.repeats) == 1 else args.repeats
    results, rows = {}, []
    for path, n_fits in zip(args.features, repeats, strict=True):
        for name in args.estimators:
            found = compared(path, name, args.epsilons, n_fits)
            results[f"{path.stem}, {name}"] = found
            rows.append([f"{path.stem}, {name}", *shown(found)])
            print(" | ".join(rows[-1]), flush=True)
    head = ["the longer fit, and above it", *map("{:g}".format, args.epsilons)]
    print(markdown_table([*head, "mean", "times faster"], rows, "steps"))
    if args.out:
        write_json(args.out, {"results": results})
    keep_tables(args.out)


def compared(
    path: Path, name: str, epsilons: list[float], n_fits: int
) -> dict[str, Any]:
    """Return scores and seconds of both fits, for each epsilon."""
    file = privfeat.open_features(path)
    train, test = file["train"], file["test"]
    X, y, X_test, y_test = train.X[:], train.y, test.X[:], test.y
    estimator = getattr(privfeat, name)(classes=range(len(file.class_names)))
    estimator.fit(X[:1024], y[:1024])  # compiles
    found: dict[str, Any] = {}
    for epsilon in epsilons:
        cell: dict[str, list[list[float]]] = {"default": [], "longer": []}
        for _ in range(n_fits):
            for which, options in (("default", {}), ("longer", LONGER[name])):
                clf = type(estimator)(
                    epsilon=epsilon, classes=estimator.classes, **options
                )
                started = time.perf_counter()
                clf.fit(X, y)
                seconds = time.perf_counter() - started
                cell[which].append([clf.score(X_test, y_test), seconds])
        found[f"{epsilon:g}"] = cell
    return found


def shown(found: dict[str, Any]) -> list[str]:
    """Return what a row shows: accuracies, their mean difference, the ratio."""
    cells, gains = [], []
    ratios: list[float] = []
    for cell in found.values():
        longer, default = (np.array(cell[which]) for which in ("longer", "default"))
        points, gain = 100 * longer[:, 0].mean(), 100 * (default - longer)[:, 0]
        cell = f"{points:.2f}, {gain.mean():+.2f}"
        if len(gain) > 1:  # one pair of fits shows no error
            cell += f" ± {gain.std(ddof=1) / math.sqrt(len(gain)):.2f}"
        cells.append(cell)
        gains.append(gain.mean())
        ratios += (longer[:, 1] / default[:, 1]).tolist()
    return [*cells, f"{np.mean(gains):+.2f}", f"{np.median(ratios):.1f}"]


if __name__ == "__main__":
    main()
