"""Which bound on a record's gradient is best for linear classifiers?

    python benchmarks/default_clip.py digits.h5 mnist5k.h5 --out default_clip.json

Fits to the training rows of feature files, but for a fifth, on which accuracy is
measured: no test row has a part in the choice. Each fit has the same records, noise and
seed with every bound, so that their differences from the default are of pairs.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of

import privfeat


def main() -> None:
    """Print one table for each estimator."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("features", nargs="+", type=Path)
    parser.add_argument("--estimators", nargs="+", default=["DPFC", "DPAdamLinear"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1, 8])
    parser.add_argument(
        "--bounds", nargs="+", type=float, default=[0.25, 0.5, 0.75, 1.0]
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    cells = Cells(args.out, settings_of(args, "features", "estimators", "epsilons"))
    for name in args.estimators:
        default = getattr(privfeat, name)()._gradient_clip
        rows = []
        for path in args.features:
            for epsilon in args.epsilons:
                found = {
                    bound: cells.get(
                        f"{path.stem}, {name}, {epsilon:g}, {bound:g}",
                        partial(scores, path, name, epsilon, bound, args.repeats),
                    )
                    for bound in {*args.bounds, default}
                }
                shown = [
                    percent(found[bound])
                    if bound == default
                    else f"{percent(found[bound])} ({gain(found, bound, default)})"
                    for bound in args.bounds
                ]
                rows.append([path.stem, f"{epsilon:g}", *shown])
                print(name, *rows[-1], flush=True)
        header = ["set", "epsilon", *(f"{bound:g}" for bound in args.bounds)]
        print("\n" + markdown_table(header, rows, name) + "\n")
    keep_tables(args.out)


def scores(
    path: Path, name: str, epsilon: float, bound: float, repeats: int
) -> list[float]:
    """Return the accuracy of each fit on the rows kept apart, in percent."""
    X, y, m = records(path)
    order = np.random.default_rng(1).permutation(len(X))
    apart, private = np.split(order, [len(X) // 5])
    found = []
    for seed in range(repeats):
        clf = getattr(privfeat, name)(
            epsilon=epsilon,
            delta=1e-5,
            classes=range(m),
            gradient_clip_norm=bound,
            random_state=seed,
        ).fit(X[private], y[private])
        found.append(round(100.0 * clf.score(X[apart], y[apart]), 3))
    return found


def records(path: Path) -> tuple[Any, Any, int]:
    """Return the training rows of a file, their labels, and the number of classes."""
    file = privfeat.open_features(path)
    train = file["train"]
    return train.X[:], np.asarray(train.y), len(file.class_names)


def percent(values: list[float]) -> str:
    """Return mean and standard error."""
    return f"{np.mean(values):.1f} ± {error(values):.1f}"


def gain(found: dict[float, list[float]], bound: float, default: float) -> str:
    """Return the mean difference of pairs, and its standard error."""
    gained = np.subtract(found[bound], found[default])
    return f"{np.mean(gained):+.1f} ± {error(gained):.1f}"


def error(values: Any) -> float:
    """Return the standard error of a mean."""
    return float(np.std(values, ddof=1) / len(values) ** 0.5)


if __name__ == "__main__":
    main()
