"""Which estimator finds a rare class?

One record in a hundred is positive, in synthetic rows of 64 features of which one tells
the classes apart. Beside the recall of ``predict``, by which a record is positive from
probability 1/2 on: the mean probability of all records (1 % would be right), the
average precision, and recall where the 1 % of highest probability are called positive,
as someone can who knows how rare the class is. Means over several fits:

    python benchmarks/rare.py --out rare.json
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from _results import keep_tables, markdown_table, write_json
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, recall_score

import privfeat

ESTIMATORS = ("DPFC", "DPAdamLinear", "DPLeastSquares", "DPNewton")
SHARE = 0.01  # of positives
N_TEST = 20_000
MEASURES = ("probability", "recall", "average precision", "recall, top 1 %")


def main() -> None:
    """Print one row for each estimator, budget and number of records."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", nargs="+", type=int, default=[5_000, 20_000])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1, 8])
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    test = draw(N_TEST, seed=2)
    results, rows = {}, []
    for n_records in args.records:
        train = draw(n_records, seed=1)
        cells = {
            (name, f"{epsilon:g}"): [
                measure(
                    getattr(privfeat, name)(
                        epsilon=epsilon, delta=args.delta, classes=[0, 1]
                    ).fit(*train),
                    *test,
                )
                for _ in range(args.repeats)
            ]
            for epsilon in args.epsilons
            for name in ESTIMATORS
        }
        free = LogisticRegression(C=100, max_iter=500).fit(*train)
        cells["non-private", "inf"] = [measure(free, *test)]
        for (name, epsilon), found in cells.items():
            results[f"{name} n={n_records} epsilon={epsilon}"] = found
            means = (f"{value:.3f}" for value in np.mean(found, axis=0))
            rows.append([f"{n_records:,}", epsilon, name, *means])
    print(markdown_table(["records", "epsilon", "", *MEASURES], rows, "rare"))
    if args.out:
        write_json(args.out, {"delta": args.delta, "measures": results})
    keep_tables(args.out)


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
    return (
        float(np.mean(scores)),
        float(recall_score(y, clf.predict(X))),
        float(average_precision_score(y, scores)),
        float(np.sum(y[highest]) / np.sum(y)),
    )


if __name__ == "__main__":
    main()
