"""How many test records of a rare class does a threshold need, or a temperature?

    python benchmarks/thresholds.py --out thresholds.json

Scores are of two normal classes whose area under the ROC curve is 0.87, three records
in a hundred positive. Every draw evaluates new test records privately and takes the
threshold that shall find 0.8 of the positives (`RocCurve.threshold_of`). The first
table has how often there was one, and in brackets the middle nine tenths of what these
thresholds find of the population. The second has the middle nine tenths of the
temperatures of `TemperatureScaling`, for a model that is 1.5 times too sure.
"""

import argparse
import math
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from scipy.special import expit, ndtr, ndtri
from sklearn.base import BaseEstimator, ClassifierMixin

import privfeat
from privfeat.metrics import evaluation_of_predictions
from privfeat.recalibration import TemperatureScaling

PART, RECALL, TOO_SURE = 0.03, 0.8, 1.5
DISTANCE = math.sqrt(2.0) * float(ndtri(0.87))


def main() -> None:
    """Print the tables and write their numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--positives", nargs="+", type=int, default=[25, 50, 100, 200])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 2.0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    kept = Cells(args.out, settings_of(args, "positives", "epsilons"))
    tables: dict[str, list[list[str]]] = {"threshold": [], "temperature": []}
    for name, measure in (("threshold", thresholds), ("temperature", temperatures)):
        for n in args.positives:
            row = [f"{n:,} of {round(n / PART):,}"]
            for epsilon in args.epsilons:
                one = partial(measure, n, epsilon, args.draws)
                found = np.array(kept.get(f"{name}, {n}, {epsilon:g}", one))
                low, high = np.quantile(found, [0.05, 0.95]) if len(found) else (0, 0)
                row.append(f"{low:.2f} to {high:.2f}")
                if name == "threshold":
                    row[-1] = f"{len(found) / args.draws:.0%} ({row[-1]})"
            tables[name].append(row)
            print(name, *row, flush=True)
    header = ["positives", *(f"epsilon {e:g}" for e in args.epsilons)]
    for name, rows in tables.items():
        print(markdown_table(header, rows, name))
    keep_tables(args.out)


def drawn(rng: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return classes and log odds of test records with ``n`` positives."""
    n_rows = round(n / PART)
    y = (np.arange(n_rows) < n).astype(int)
    z = rng.normal(size=n_rows) + DISTANCE * (y - 0.5)
    return y, DISTANCE * z + math.log(PART / (1 - PART))


def thresholds(n: int, epsilon: float, n_draws: int) -> list[float]:
    """Return what part of all positives each threshold finds, where there is one."""
    rng = np.random.default_rng(n)
    found = []
    for seed in range(n_draws):
        y, odds = drawn(rng, n)
        p = expit(odds)
        private = evaluation_of_predictions(
            np.c_[1 - p, p], y, classes=[0, 1], epsilon=epsilon, random_state=seed
        )
        try:
            threshold = private.roc.threshold_of(RECALL)
        except ValueError:
            continue
        z = (math.log(threshold / (1 - threshold)) - math.log(PART / (1 - PART))) / (
            DISTANCE
        )
        found.append(round(float(ndtr(DISTANCE / 2 - z)), 4))
    return found


class Sure(ClassifierMixin, BaseEstimator):
    """Take rows for log odds, and be too sure of them."""

    classes_ = np.arange(2)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> "Sure":
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        p = expit(TOO_SURE * np.asarray(X)[:, 0])
        return np.c_[1 - p, p]


def temperatures(n: int, epsilon: float, n_draws: int) -> list[float]:
    """Return the temperatures of fits on new records; 1.5 would be right."""
    rng = np.random.default_rng(n)
    found = []
    for seed in range(max(n_draws // 5, 2)):  # one record at a time takes its time
        y, odds = drawn(rng, n)
        scaling = TemperatureScaling(Sure(), epsilon=epsilon, random_state=seed)
        found.append(float(scaling.fit(odds[:, None], y).temperature_))
    return found


if __name__ == "__main__":
    main()
