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
from pathlib import Path

import numpy as np
from _results import keep_tables, markdown_table, write_json
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
    rows, results = [], {}
    for name, make in DATA.items():
        (X, y), options = make()
        X, X_test, y, y_test = train_test_split(X, y, random_state=0)
        rows.append([name])
        results[name] = {}
        for epsilon in args.epsilons:
            scores = [
                privfeat.DPLeastSquaresRegressor(
                    epsilon=epsilon, delta=args.delta, **options
                )
                .fit(X, y)
                .score(X_test, y_test)
                for _ in range(args.repeats)
            ]
            error = np.std(scores, ddof=1) / math.sqrt(len(scores)) if scores[1:] else 0
            rows[-1].append(f"{np.mean(scores):.3f} ± {error:.3f}")
            results[name][f"{epsilon:g}"] = scores
        results[name]["inf"] = LinearRegression().fit(X, y).score(X_test, y_test)
        rows[-1].append(f"{results[name]['inf']:.3f}")
    header = ["R^2 at epsilon", *(f"{e:g}" for e in args.epsilons), "non-private"]
    print(markdown_table(header, rows, "regression"))
    if args.out:
        write_json(args.out, {"delta": args.delta, "r2": results})
    keep_tables(args.out)


if __name__ == "__main__":
    main()
