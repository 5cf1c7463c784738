"""What does it cost to protect all records of a user together, and which bound is best?

Users are made of the training rows of a set: with k records each, or with numbers of
records that fall as a power law (Pareto with exponent 0.8, cut at 50), and with records
that are drawn at random, or alike: of one class, and next to each other along the
direction in which the rows of the class vary the most. An estimator is fitted with
``user_bound="count"`` and ``"sum"``, to all records, and to the average of the rows of
each user, as one record with the commonest label; test accuracy in percent.

    python benchmarks/users.py cifar10_128.h5 --records 10000 --out users.json
"""

import argparse
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of

import privfeat

SIZES = ("2", "10", "50", "tail")
KINDS = ("random", "alike")
BOUNDS = ("count", "sum", "average")
MOST = 50


def main() -> None:
    """Print one table for each set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("features", nargs="+", type=Path)
    parser.add_argument("--records", type=int, default=10_000, help="of each set")
    parser.add_argument("--tests", type=int, default=10_000, help="test records")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--bounds", nargs="+", choices=BOUNDS, default=BOUNDS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1, 8])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--estimator", default="DPFC")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    cells_left = ("features", "sizes", "bounds", "epsilons")
    kept = Cells(args.out, settings_of(args, *cells_left))
    for path in args.features:
        file = privfeat.open_features(path)
        X, y = file["train"].X[:].astype(np.float32), np.asarray(file["train"].y)
        order = np.random.default_rng(0).permutation(len(y))[: args.records]
        some = np.random.default_rng(2).permutation(len(file["test"].y))[: args.tests]
        test = file["test"].X[np.sort(some)], np.asarray(file["test"].y)[np.sort(some)]
        rows = []
        for kind, sizes in ((kind, sizes) for kind in KINDS for sizes in args.sizes):
            places, groups = users_of(X[order], y[order], kind, sizes)
            train = X[order][places], y[order][places], groups
            for name, data, options in bounds(*train):
                if name not in args.bounds:
                    continue
                cells = []
                for epsilon in args.epsilons:
                    found = kept.get(
                        f"{path.stem} {kind} {sizes} {name} {epsilon:g}",
                        partial(
                            measure, args, epsilon, data, options, len(set(y)), test
                        ),
                    )
                    error = np.std(found, ddof=1) / len(found) ** 0.5
                    cells.append(f"{np.mean(found):.1f} ± {error:.1f}")
                rows.append([kind, sizes, f"{groups[-1] + 1:,}", name, *cells])
                print("|", " | ".join([path.stem, *rows[-1]]), "|", flush=True)
        budgets = [f"epsilon {epsilon:g}" for epsilon in args.epsilons]
        header = ["records of a user", "number", "users", "bound", *budgets]
        print(markdown_table(header, rows, path.stem))
        kept.save()
    keep_tables(args.out)


def users_of(
    X: np.ndarray, y: np.ndarray, kind: str, sizes: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return records in the order of their users, and the user of each."""
    rng, n = np.random.default_rng(1), len(y)
    if sizes == "tail":
        numbers = np.clip(rng.pareto(0.8, n) + 0.5, 1, MOST).astype(int)
    else:
        numbers = np.full(n, int(sizes))
    groups = np.repeat(np.arange(n), numbers)[:n]
    if kind == "random":
        return rng.permutation(n), groups
    along = np.empty(n)
    for label in np.unique(y):
        rows = unit(X[y == label])
        rows = rows - rows.mean(axis=0)
        along[y == label] = rows @ np.linalg.svd(rows, full_matrices=False)[2][0]
    return np.lexsort((along, y)), groups


def bounds(
    X: np.ndarray, y: np.ndarray, groups: np.ndarray
) -> Iterator[tuple[str, tuple[np.ndarray, ...], dict[str, Any]]]:
    """Yield the name of each bound, what is fitted, and the parameters."""
    most = int(np.max(np.bincount(groups)))
    for bound in ("count", "sum"):
        yield (
            bound,
            (X, y, groups),
            {"max_group_size": most, "user_bound": bound},
        )
    starts = np.flatnonzero(np.append(True, np.diff(groups)))
    rows = np.add.reduceat(unit(X), starts)
    labels = [np.bincount(part).argmax() for part in np.split(y, starts[1:])]
    yield "average", (rows, np.array(labels)), {}


def unit(X: np.ndarray) -> np.ndarray:
    """Return rows of unit norm."""
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def measure(
    args: argparse.Namespace,
    epsilon: float,
    data: tuple[np.ndarray, ...],
    options: dict[str, Any],
    n_classes: int,
    test: tuple[np.ndarray, np.ndarray],
) -> list[float]:
    """Return the test accuracies of some fits, in percent."""
    cls = getattr(privfeat, args.estimator)
    clf = cls(epsilon=epsilon, classes=range(n_classes), **options)
    return [100.0 * clf.fit(*data).score(*test) for _ in range(args.repeats)]


if __name__ == "__main__":
    main()
