"""How near are private figures of a test set to the exact ones, and do intervals hold?

    python benchmarks/evaluation.py --draws 200 --out evaluation.json

Every draw takes new test records from a known population and evaluates predictions of
them privately. Scores are of two normal classes, by logistic regression that is 1.3
times too sure; numbers are a linear relation with normal errors; sets are of four
classes. The first table has the distance of the private area under the ROC curve to the
exact one of the same records. The second has the part of 95 % intervals that hold the
figure of the population, and their mean width. The third has conformal sets that shall
miss the class of one record in ten: the part of new records that they hold, over
calibrations, and how many classes they name.
"""

import argparse
import math
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import roc_auc_score

import privfeat
from privfeat.metrics import evaluation_of_predictions
from privfeat.metrics.tables import UnitGrid
from privfeat.recalibration import ConformalClassifier

# Distance of the classes, part of positives, records, records of one user.
CLASSES = {
    "near classes": (1.0, 0.5, 10_000, 1),
    "far classes": (2.0, 0.5, 10_000, 1),
    "very far classes": (3.5, 0.5, 10_000, 1),
    "one positive in ten": (2.0, 0.1, 10_000, 1),
    "few records": (2.0, 0.5, 1_000, 1),
    "users of four records": (1.0, 0.5, 10_000, 4),
}
BOUNDS = (-6.0, 6.0)
N_POPULATION = 2_000_000
FIGURES = ("accuracy", "balanced_accuracy", "roc_auc", "ece")
ERRORS = ("r2", "mean_absolute_error", "mean_squared_error")
NAMES = dict(zip(ERRORS, ("R squared", "mean absolute", "mean squared"), strict=True))


def main() -> None:
    """Print the tables and write their numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 2.0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    kept = Cells(args.out, settings_of(args, "epsilons"))
    areas, held, sets = [], [], []
    for epsilon in args.epsilons:
        for name, setting in CLASSES.items():
            measure = partial(of_scores, *setting, epsilon, args.draws)
            found = kept.get(f"{name}, {epsilon:g}", measure)
            # by the draws: distance of the area, then pairs of held and width
            array = np.array(found)
            distance = array[:, 0]
            shown = [distance.mean(), np.quantile(distance, 0.99)]
            near = np.mean(distance <= 0.01)
            label = f"{name}, n={setting[2]:,}"
            cells = [label, f"{epsilon:g}", *(f"{x:.4f}" for x in shown), f"{near:.3f}"]
            areas.append(cells)
            held.append([label, f"{epsilon:g}", *pairs(array[:, 1:]), "", "", ""])
            print(*held[-1], *cells, flush=True)
        measure = partial(of_numbers, 10_000, epsilon, args.draws)
        array = np.array(kept.get(f"numbers, {epsilon:g}", measure))
        blank = [""] * len(FIGURES)
        held.append(["numbers, n=10,000", f"{epsilon:g}", *blank, *pairs(array)])
        print(*held[-1], flush=True)
        for n in (500, 1_000, 2_000, 10_000):
            measure = partial(of_sets, n, epsilon, args.draws)
            array = np.array(kept.get(f"sets of {n}, {epsilon:g}", measure))
            error = array[:, 0].std(ddof=1) / math.sqrt(len(array))
            rate, size = array.mean(axis=0)
            row = [f"n={n:,}", f"{epsilon:g}", f"{rate:.4f} ± {error:.4f}"]
            sets.append([*row, f"{size:.2f}"])
            print(*sets[-1], flush=True)
    header = ["records", "epsilon", "mean distance", "99 % below", "part within 0.01"]
    print(markdown_table(header, areas, "area"))
    header = ["records", "epsilon", "accuracy", "balanced", "ROC area", "ECE"]
    print(markdown_table([*header, *NAMES.values()], held, "coverage"))
    header = ["calibration", "epsilon", "holds the class", "classes in a set"]
    print(markdown_table(header, sets, "sets"))
    keep_tables(args.out)


def pairs(found: np.ndarray) -> list[str]:
    """Return coverage and mean width of each figure, in one cell."""
    means = found.mean(axis=0).reshape(-1, 2)
    return [f"{held:.3f} ({width:.3f})" for held, width in means]


def scores_of(
    rng: Any, n: int, distance: float, part: float, cluster: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return classes and probabilities; records of a user are alike."""
    n_users = n // cluster
    y = np.repeat(rng.random(n_users) < part, cluster)
    z = np.repeat(rng.normal(size=n_users), cluster)
    if cluster > 1:
        z = 0.8 * z + 0.6 * rng.normal(size=n)
    odds = distance * (z + distance * y - distance / 2) + math.log(part / (1 - part))
    return y.astype(int), expit(1.3 * odds)


def of_scores(
    distance: float, part: float, n: int, cluster: int, epsilon: float, n_draws: int
) -> list[list[float]]:
    """Return of each draw the distance of the area, and what each interval did."""
    rng = np.random.default_rng(0)
    y, p = scores_of(rng, N_POPULATION, distance, part, cluster)
    truth = population(y, p)
    found = []
    for seed in range(n_draws):
        y, p = scores_of(rng, n, distance, part, cluster)
        users: dict[str, Any] = {}
        if cluster > 1:
            users = {"groups": np.arange(n) // cluster, "max_group_size": cluster}
        private = evaluation_of_predictions(
            np.c_[1 - p, p],
            y,
            classes=[0, 1],
            epsilon=epsilon,
            random_state=seed,
            **users,
        )
        exact = roc_auc_score(y, p)
        found.append([round(abs(private.roc_auc.value - exact), 5)])
        for name in FIGURES:
            found[-1] += checked(private.figures[name], truth[name])
    return found


def population(y: np.ndarray, p: np.ndarray) -> dict[str, float]:
    """Return the figures of very many records; the ECE by the public bins."""
    sure, right = np.maximum(p, 1 - p), (p > 0.5) == y
    edges = UnitGrid((16,)).edges[8:]
    bins = np.searchsorted(edges[1:-1], sure)
    gaps = [abs(np.sum((right - sure)[bins == b])) for b in range(len(edges) - 1)]
    recall = [float(right[y == c].mean()) for c in (0, 1)]
    return {
        "accuracy": float(right.mean()),
        "balanced_accuracy": sum(recall) / 2,
        "roc_auc": float(roc_auc_score(y, p)),
        "ece": float(sum(gaps) / len(y)),
    }


def of_numbers(n: int, epsilon: float, n_draws: int) -> list[list[float]]:
    """Return what each interval of a regressor did; normal errors, cut to bounds."""
    rng = np.random.default_rng(0)

    def drawn(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        x = 1.5 * rng.normal(size=n_rows)
        return x.clip(*BOUNDS), (x + rng.normal(size=n_rows)).clip(*BOUNDS)

    x, y = drawn(N_POPULATION)
    error = y - x
    square = float(np.mean(error**2))
    truth = (1 - square / np.var(y), float(np.mean(np.abs(error))), square)
    found = []
    for seed in range(n_draws):
        private = evaluation_of_predictions(
            *drawn(n), target_bounds=BOUNDS, epsilon=epsilon, random_state=seed
        )
        found.append([])
        for name, value in zip(ERRORS, truth, strict=True):
            found[-1] += checked(private.figures[name], value)
    return found


def checked(estimate: Any, truth: float) -> list[float]:
    """Return whether an interval holds the truth, and its width."""
    held = estimate.low <= truth <= estimate.high
    return [int(held), round(estimate.high - estimate.low, 5)]


class Softmax(ClassifierMixin, BaseEstimator):
    """Predict the softmax of the rows."""

    classes_ = np.arange(4)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> "Softmax":
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return softmax(np.asarray(X), axis=1)


def of_sets(n: int, epsilon: float, n_draws: int) -> list[list[float]]:
    """Return of each calibration how many new records are held, and mean sizes."""
    rng = np.random.default_rng(0)

    def drawn(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        y = rng.integers(0, 4, n_rows)
        return 2.0 * np.eye(4)[y] + rng.normal(size=(n_rows, 4)), y

    X_new, y_new = drawn(20_000)
    found = []
    for seed in range(max(n_draws // 10, 2)):  # one record at a time takes its time
        model = ConformalClassifier(Softmax(), epsilon=epsilon, random_state=seed)
        sets = model.fit(*drawn(n)).predict_set(X_new)
        held = sets[np.arange(len(y_new)), y_new]
        rate, size = held.mean(), sets.sum(axis=1).mean()
        found.append([round(float(rate), 5), round(float(size), 5)])
    return found


if __name__ == "__main__":
    main()
