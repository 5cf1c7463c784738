"""Which estimator finds a rare class?

Without arguments: one record in a hundred is positive, in synthetic rows of 64 features
of which one tells the classes apart. Beside the recall of ``predict``, by which a
record is positive from probability 1/2 on: the mean probability of all records (1 %
would be right), the average precision, and recall where the 1 % of highest probability
are called positive, as someone can who knows how rare the class is.

With the feature files of CIFAR-10 and of banking77 (77 kinds of customers' questions;
images of CIFAR-100 are not to be had for these runs): long tails, in which the numbers
of training records of the classes fall from the largest by a constant factor to one
tenth, fiftieth or hundredth of it (Cui et al. 2019), and CIFAR-10 with one airplane in
a hundred. Test classes are equally large, so accuracy is the mean over classes.
``"balanced"`` and *shifted*, which knows the shares of the training classes and moves
the intercepts to equal ones, stand beside fits without either:

    python benchmarks/rare.py cifar10_128.h5 banking77.h5 --out rare.json

Features of more than ``--columns`` columns are projected to as many by one Gaussian
matrix, which knows no record: of the 1,280 of CIFAR-10 that costs a point or two.
"""

import argparse
import math
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix,
    recall_score,
    roc_auc_score,
)

import privfeat
from privfeat.analysis.rates import shifted_rates

ESTIMATORS = ("DPFC", "DPAdamLinear", "DPLeastSquares", "DPNewton")
SHARE = 0.01  # of positives
N_TEST = 20_000
MEASURES = ("probability", "recall", "average precision", "recall, top 1 %", "ROC AUC")
FREE = "non-private"
WEIGHING = ("DPFC", "DPAdamLinear", "DPLeastSquares")
OF_CLASSES = ("balanced accuracy", "worst class", "rarest class", "ROC AUC")
RATIOS = {"cifar10": (10, 50, 100), "banking77": (10, 50, 100)}


def main() -> None:
    """Print one row for each estimator, budget and set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("features", nargs="*", type=Path, help="of long tails")
    parser.add_argument("--records", nargs="*", type=int, default=[5_000, 20_000])
    parser.add_argument("--sets", default="", help="only sets with this in the name")
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1, 8])
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    cells = ("features", "records", "sets", "epsilons")
    kept = Cells(args.out, settings_of(args, *cells))
    if args.records:
        synthetic(args, kept)
        kept.save()
    if args.features:
        long_tails(args, kept)
    keep_tables(args.out)


def synthetic(args: argparse.Namespace, kept: Cells) -> None:
    """Print the table of drawn rows."""
    test = draw(N_TEST, seed=2)
    free = LogisticRegression(C=100, max_iter=500)
    rows = []
    for n_records in args.records:
        train = draw(n_records, seed=1)
        fits = {
            (f"{epsilon:g}", name): getattr(privfeat, name)(
                epsilon=epsilon, delta=args.delta, classes=[0, 1]
            )
            for epsilon in args.epsilons
            for name in ESTIMATORS
        }
        for (epsilon, name), clf in (fits | {("inf", FREE): free}).items():
            n_fits = 1 if name == FREE else 2 * args.repeats
            found = kept.get(
                f"synthetic, {n_records} records, {name}, epsilon {epsilon}",
                partial(repeated, clf, train, test, measure, n_fits),
            )
            columns = (with_error(column, 3) for column in np.transpose(found))
            rows.append([f"{n_records:,}", epsilon, name, *columns])
    print(markdown_table(["records", "epsilon", "", *MEASURES], rows, "rare"))


def repeated(clf, train, test, measure, n_fits: int) -> list:
    """Return what ``measure`` finds of some fits."""
    return [measure(clone(clf).fit(*train), *test) for _ in range(n_fits)]


def draw(n_records: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows away from zero, as features are, and labels."""
    y = (np.arange(n_records) < SHARE * n_records).astype(int)
    X = 1.0 + np.random.default_rng(seed).normal(size=(n_records, 64))
    X[:, 0] += 4.0 * y
    return X, y


def measure(clf, X: np.ndarray, y: np.ndarray) -> tuple[float, ...]:
    """Return the measures of one fitted classifier."""
    scores = clf.predict_proba(X)[:, 1]
    highest = np.argsort(-scores)[: int(SHARE * len(y))]
    return tuple(
        round(float(value), 5)
        for value in (
            np.mean(scores),
            recall_score(y, clf.predict(X)),
            average_precision_score(y, scores),
            np.sum(y[highest]) / np.sum(y),
            roc_auc_score(y, scores),
        )
    )


def long_tails(args: argparse.Namespace, kept: Cells) -> None:
    """Print a table of all sets, and one of the classes of each set of ten."""
    table = []
    for name, train, test in sets(args.features, args.columns):
        if args.sets not in name:
            continue
        shares = np.bincount(train[1]) / len(train[1])
        classes = []
        for epsilon, kind in [
            *((e, kind) for e in args.epsilons for kind in WEIGHING),
            (math.inf, FREE),
        ]:
            found = kept.get(
                f"{name}, epsilon {epsilon:g}, {kind}",
                partial(of_kind, kind, epsilon, train, test, shares, args),
            )
            for which, cell in found.items():
                columns = (
                    with_error(column, 3 if i == 3 else 1)
                    for i, column in enumerate(np.transpose(cell["fits"]))
                )
                table.append([name, f"{epsilon:g}", which, *columns])
                print(" | ".join(table[-1]), flush=True)
                recalls = (shown(*pair) for pair in cell["classes"])
                classes.append([f"{epsilon:g}", which, *recalls])
        head = ["set", "epsilon", "", *OF_CLASSES]
        print(markdown_table(head, table, "long tails"))
        if len(shares) <= 10:
            head = ["epsilon", "", *map("{:.1%}".format, shares)]
            print(markdown_table(head, classes, name))
        kept.save()


def of_kind(kind, epsilon, train, test, shares, args) -> dict[str, dict[str, list]]:
    """Return `summary` of an estimator, with what it does about rare classes."""
    found: dict[str, list] = {}
    for _ in range(1 if kind == FREE else args.repeats):
        fits = fits_of(kind, train, shares, epsilon, args.delta)
        for which, clf, rows in fits:
            found.setdefault(which, []).append(of_classes(clf, rows(test[0]), test[1]))
    return {which: summary(fits, shares) for which, fits in found.items()}


def summary(fits: list, shares: np.ndarray) -> dict[str, list]:
    """Return `OF_CLASSES` of each fit, and mean and error of each class's recall."""
    recalls = 100 * np.array([each[0] for each in fits])
    columns = (
        recalls.mean(axis=1),
        # of the class that is worst on average: the least of many is noise
        recalls[:, recalls.mean(axis=0).argmin()],
        recalls[:, shares.argmin()],
        np.array([each[1] for each in fits]),
    )
    of_each = [recalls.mean(axis=0)]
    if len(fits) > 1:
        of_each.append(recalls.std(axis=0, ddof=1) / math.sqrt(len(fits)))
    # of 77 classes every fit by itself would be too much for a file
    return {
        "fits": np.column_stack(columns).round(4).tolist(),
        "classes": np.column_stack(of_each).round(2).tolist(),
    }


def fits_of(kind: str, train, shares: np.ndarray, epsilon: float, delta: float):
    """Yield names, fitted classifiers, and what these see of rows."""
    X, y = train
    if kind == FREE:
        for which, weight in (("", None), (", balanced", "balanced")):
            free = LogisticRegression(C=100, max_iter=300, class_weight=weight)
            yield f"{FREE}{which}", free.fit(unit(X), y), unit
        return
    budget = {"epsilon": epsilon, "delta": delta, "classes": range(len(shares))}
    clf = getattr(privfeat, kind)(**budget).fit(X, y)
    yield kind, clf, np.asarray
    if kind != "DPLeastSquares":
        equal = np.ones(len(shares))
        shifted = shifted_rates(clf, before=shares, after=equal)
        yield f"{kind}, shifted", shifted, np.asarray
    clf = getattr(privfeat, kind)(**budget, class_weight="balanced").fit(X, y)
    yield f"{kind}, balanced", clf, np.asarray


def shown(*figures: float) -> str:
    """Return a mean and its error, if it has one, as a table has them."""
    return " ± ".join(f"{figure:.0f}" for figure in figures)


def sets(features: list[Path], n_columns: int):
    """Yield names, training records and test records."""
    for path in features:
        file = privfeat.open_features(path)
        X, y = projected(file["train"].X[:], n_columns), np.asarray(file["train"].y)
        test = projected(file["test"].X[:], n_columns), np.asarray(file["test"].y)
        kind = path.stem.split("_")[0]
        for ratio in RATIOS.get(kind, ()):
            kept = long_tail(y, ratio)
            yield f"{kind}, ratio {ratio}", (X[kept], y[kept]), test
        if kind == "cifar10":  # 91 airplanes among 9,000 other images
            sizes = [91, *[1000] * 9]
            kept = [np.flatnonzero(y == j)[:size] for j, size in enumerate(sizes)]
            kept = np.sort(np.concatenate(kept))
            one = (X[kept], (y[kept] == 0).astype(int))
            yield "cifar10, 1 % airplanes", one, (test[0], (test[1] == 0).astype(int))


def long_tail(y: np.ndarray, ratio: float) -> np.ndarray:
    """Return the places of the first records of each class, ever fewer."""
    counts = np.bincount(y)
    order = np.argsort(-counts, kind="stable")
    sizes = counts.max() * ratio ** (-np.arange(len(counts)) / (len(counts) - 1))
    places = [
        np.flatnonzero(y == label)[: round(size)]
        for label, size in zip(order, sizes, strict=True)
    ]
    return np.sort(np.concatenate(places))


def of_classes(clf, X: np.ndarray, y: np.ndarray) -> tuple[list[float], float]:
    """Return the recall of each class, and the mean area under the ROC curves."""
    p = clf.predict_proba(X)
    matrix = confusion_matrix(y, clf.predict(X), normalize="true")
    score = p[:, 1] if p.shape[1] == 2 else p
    auc = roc_auc_score(y, score, multi_class="ovr")
    return np.diag(matrix).tolist(), float(auc)


def projected(X: np.ndarray, n_columns: int) -> np.ndarray:
    """Return rows of at most so many columns, in float32."""
    X = np.asarray(X, np.float32)
    if X.shape[1] <= n_columns:
        return X
    drawn = np.random.default_rng(0).normal(size=(X.shape[1], n_columns))
    return X @ (drawn / math.sqrt(n_columns)).astype(np.float32)


def unit(X: np.ndarray) -> np.ndarray:
    """Return rows of unit norm, as the private estimators see them."""
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def with_error(values: np.ndarray, digits: int) -> str:
    """Return the mean and, of several values, its standard error."""
    mean = f"{values.mean():.{digits}f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {values.std(ddof=1) / math.sqrt(len(values)):.{digits}f}"


if __name__ == "__main__":
    main()
