"""How many records of a rare class does a private fit need?

    python benchmarks/positives.py --out positives.json

Rows are drawn: features of a table after their declaration, evenly spread in [-1, 1],
of which every third says something about the class. They are fitted as ``privfeat fit``
fits a table: by `DPFC`, with rows clipped to half of the norm that one can have. New
test rows give the area under the ROC curve, and the recall at the threshold that calls
one in ten of the other class positive. Beside them: the accuracy of ``predict``, which
says too little of a rare class, and logistic regression without privacy.
"""

import argparse
import math
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve

import privfeat

N_TEST = 50_000
FREE = math.inf
FALSE_ALARMS = 0.1
MEASURES = {"ROC AUC": 2, "recall": 2, "accuracy": 3}


def main() -> None:
    """Print a table of each measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--positives", nargs="+", type=int, default=[50, 100, 200, 500])
    parser.add_argument("--shares", nargs="+", type=float, default=[0.12, 0.02])
    parser.add_argument("--features", nargs="+", type=int, default=[12, 48])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1, 2, 4])
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    kept = Cells(
        args.out, settings_of(args, "positives", "shares", "features", "epsilons")
    )
    rows: dict[str, list[list[str]]] = {name: [] for name in MEASURES}
    for d in args.features:
        for share in args.shares:
            for n_positive in args.positives:
                first = [f"{d}", f"{share:.0%}", f"{n_positive:,}"]
                setting = (d, share, n_positive, args.delta, args.repeats)
                found = {
                    epsilon: np.array(
                        kept.get(
                            f"{', '.join(first)}, epsilon {epsilon:g}",
                            partial(measured, epsilon, *setting),
                        )
                    )
                    for epsilon in [*args.epsilons, FREE]
                }
                for column, (name, digits) in enumerate(MEASURES.items()):
                    cells = [
                        with_error(fits[:, column], digits) for fits in found.values()
                    ]
                    rows[name].append([*first, *cells])
                print(" | ".join(rows["ROC AUC"][-1]), flush=True)
    head = ["features", "share", "positives"]
    head += [f"epsilon {epsilon:g}" for epsilon in args.epsilons]
    for name, cells in rows.items():
        print(markdown_table([*head, "without privacy"], cells, name))
    kept.save()
    keep_tables(args.out)


def measured(
    epsilon: float, d: int, share: float, n_positive: int, delta: float, n_fits: int
) -> list[list[float]]:
    """Return `MEASURES` of each fit; each has training rows of its own."""
    rng = np.random.default_rng(0)
    weights, intercept = population(d, share)
    test = draw(rng, N_TEST, weights, intercept)
    found = []
    for _ in range(n_fits):
        n_records = round(n_positive / share)
        X, y = draw(rng, n_records, weights, intercept)
        clf: Any = LogisticRegression()
        if epsilon != FREE:
            clf = privfeat.DPFC(
                epsilon=epsilon,
                delta=delta,
                classes=[False, True],
                row_scaling="clip",
                clip_norm=0.5 * math.sqrt(d),
            )
        scores = clf.fit(X, y).predict_proba(test[0])[:, 1]
        false, true, _ = roc_curve(test[1], scores)
        figures = (
            roc_auc_score(test[1], scores),
            true[np.searchsorted(false, FALSE_ALARMS, side="right") - 1],
            np.mean((scores > 0.5) == test[1]),
        )
        found.append([round(float(figure), 4) for figure in figures])
    return found


def population(d: int, share: float) -> tuple[np.ndarray, float]:
    """Return the weights of the features, and an intercept for this share."""
    weights = np.zeros(d)
    weights[::3] = np.resize([1.0, -1.0], len(weights[::3]))
    weights *= 2.4 / math.sqrt(float(np.sum(weights**2)))
    X = np.random.default_rng(1).uniform(-1, 1, size=(200_000, d))
    scores = X @ weights

    def excess(intercept: float) -> float:
        return float(expit(scores + intercept).mean()) - share

    return weights, float(brentq(excess, -20.0, 20.0))


def draw(
    rng: Any, n_records: int, weights: np.ndarray, intercept: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and whether each is of the rare class."""
    X = rng.uniform(-1, 1, size=(n_records, len(weights)))
    return X, rng.random(n_records) < expit(X @ weights + intercept)


def with_error(values: np.ndarray, digits: int) -> str:
    """Return the mean and its standard error."""
    error = values.std(ddof=1) / math.sqrt(len(values))
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


if __name__ == "__main__":
    main()
