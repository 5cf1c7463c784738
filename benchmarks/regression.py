"""How good is private regression at each epsilon?

R^2 on test rows of the untuned estimator, mean and standard error over several fits:

    python benchmarks/regression.py --repeats 20 --out regression.json

``clip_norm`` and ``target_bounds`` are round numbers that one would know beforehand:
the score of diabetes progression is taken to be in 0 to 400 (the records hold 25 to
346), and the columns, which scikit-learn divides by their norm over 442 patients, are
of the order of ``1 / sqrt(442)``: a row of ten has a norm near 0.15, its bound is 0.2.
"""

import argparse
import math
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _results import Cells, keep_tables, markdown_table, settings_of
from sklearn.datasets import load_diabetes, make_regression
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

import privfeat


def diabetes():
    """442 patients, ten standardized features divided by the root of their number."""
    options = {"clip_norm": 0.2, "target_bounds": (0.0, 400.0)}
    return load_diabetes(return_X_y=True), options


def synthetic(n_features, n_informative, noise):
    """Twenty thousand normal rows."""
    data = make_regression(
        n_samples=20_000,
        n_features=n_features,
        n_informative=n_informative,
        noise=noise,
        random_state=0,
    )
    clip_norm = math.sqrt(n_features)
    return data, {"clip_norm": clip_norm, "target_bounds": (-500.0, 500.0)}


DATA = {
    "diabetes, n=331, d=10": diabetes,
    "synthetic, n=15000, d=10": lambda: synthetic(10, 10, 100.0),
    "synthetic, n=15000, d=50": lambda: synthetic(50, 10, 50.0),
}


def main() -> None:
    """Print one table and write its numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--epsilons", nargs="+", type=float, default=[0.1, 0.5, 1, 2, 8]
    )
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", privfeat.PrivacyWarning)
    rows, kept = [], Cells(args.out, settings_of(args, "epsilons"))
    for name, make in DATA.items():
        (X, y), options = make()
        X, X_test, y, y_test = train_test_split(X, y, random_state=0)
        rows.append([name])
        for epsilon in args.epsilons:
            options |= {"epsilon": epsilon, "delta": args.delta}
            clf = privfeat.DPLeastSquaresRegressor(**options)
            measure = partial(scores_of, clf, (X, y), (X_test, y_test), args.repeats)
            scores = kept.get(f"{name}, {epsilon:g}", measure)
            error = np.std(scores, ddof=1) / math.sqrt(len(scores)) if scores[1:] else 0
            rows[-1].append(f"{np.mean(scores):.3f} ± {error:.3f}")
        free = partial(scores_of, LinearRegression(), (X, y), (X_test, y_test), 1)
        rows[-1].append(f"{kept.get(f'{name}, inf', free)[0]:.3f}")
    header = ["R^2 at epsilon", *(f"{e:g}" for e in args.epsilons), "non-private"]
    print(markdown_table(header, rows, "regression"))
    keep_tables(args.out)


def scores_of(model, train, test, repeats: int) -> list[float]:
    """Return the R^2 of some fits."""
    return [float(model.fit(*train).score(*test)) for _ in range(repeats)]


if __name__ == "__main__":
    main()
